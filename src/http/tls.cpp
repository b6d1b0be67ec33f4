#include "http/tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/assert.hpp"

namespace loam::http {
namespace {

struct FreeContext {
  void operator()(SSL_CTX* raw) const noexcept { SSL_CTX_free(raw); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

// OpenSSL's own words for what failed first in this thread; forgets the rest.
std::string last_words() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "no reason was given";
  std::array<char, 256> text{};
  ERR_error_string_n(code, text.data(), text.size());
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : text.data();
}

Error no_library(const std::string& doing) {
  return {ErrorKind::internal, doing + ": " + last_words(), "check the installation of OpenSSL"};
}

Result<Context> make_context(const TlsOptions& options) {
  Context context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return no_library("TLS cannot be used");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (SSL_CTX_set_default_verify_paths(context.get()) != 1)
    return no_library("the system's certificates cannot be found");
  if (options.ca_file.empty()) return context;
  ERR_clear_error();
  if (SSL_CTX_load_verify_file(context.get(), options.ca_file.c_str()) != 1) {
    return Error{ErrorKind::not_found,
                 "no certificate can be read from '" + options.ca_file + "': " + last_words(),
                 "name a PEM file of certificates"};
  }
  return context;
}

}  // namespace

void TlsFilter::Free::operator()(ssl_st* raw) const noexcept {
  SSL_free(raw);
}

Result<TlsFilter> TlsFilter::begin(const TlsOptions& options) {
  LOAM_TRY(context, make_context(options));
  std::unique_ptr<ssl_st, Free> ssl(SSL_new(context.get()));
  BIO* in = BIO_new(BIO_s_mem());
  BIO* out = BIO_new(BIO_s_mem());
  if (ssl == nullptr || in == nullptr || out == nullptr) {
    BIO_free(in);
    BIO_free(out);
    return no_library("TLS cannot be used");
  }
  BIO_set_mem_eof_return(in, -1);  // what has not come yet is no end
  SSL_set_bio(ssl.get(), in, out);
  SSL_set_connect_state(ssl.get());
  const char* name = options.server_name.c_str();
  // A literal address is a name of its own kind, and is not told to the server (RFC 6066, 3).
  X509_VERIFY_PARAM* checks = SSL_get0_param(ssl.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(checks, name) != 1) {
    ERR_clear_error();
    X509_VERIFY_PARAM_set_hostflags(checks, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (SSL_set1_host(ssl.get(), name) != 1 || SSL_set_tlsext_host_name(ssl.get(), name) != 1) {
      return invalid("'" + options.server_name + "' is not the name of a server",
                     "write the host as its certificate has it");
    }
  }
  return TlsFilter(std::move(ssl), options.server_name);
}

Error TlsFilter::fault(const std::string& doing) const {
  const long verdict = SSL_get_verify_result(ssl_.get());
  if (verdict != X509_V_OK) {
    ERR_clear_error();
    return {ErrorKind::permission_denied,
            "the certificate of " + server_name_ +
                " was not accepted: " + X509_verify_cert_error_string(verdict),
            "check the name, or give the file of the authority that signed it"};
  }
  return {ErrorKind::unavailable, doing + " " + server_name_ + ": " + last_words(),
          "check that it speaks TLS 1.2 or newer there"};
}

Result<bool> TlsFilter::shake_hands() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  if (done == 1) return true;
  const int why = SSL_get_error(ssl_.get(), done);
  if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return false;
  return fault("no secure connection to");
}

void TlsFilter::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto length = static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX));
    const int taken = BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), length);
    LOAM_ASSERT(taken > 0);  // memory takes everything
    bytes.remove_prefix(static_cast<std::size_t>(taken));
  }
}

std::string TlsFilter::take_output() {
  BIO* out = SSL_get_wbio(ssl_.get());
  std::string bytes(BIO_ctrl_pending(out), '\0');
  if (bytes.empty()) return bytes;
  const int taken = BIO_read(out, bytes.data(), static_cast<int>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(std::max(taken, 0)));
  return bytes;
}

Result<void> TlsFilter::encrypt(std::string_view text) {
  ERR_clear_error();
  while (!text.empty()) {
    const auto length = static_cast<int>(std::min<std::size_t>(text.size(), 1 << 20));
    const int written = SSL_write(ssl_.get(), text.data(), length);
    if (written <= 0) return fault("cannot send to");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<bool> TlsFilter::decrypt(std::string& text) {
  constexpr std::size_t piece = 16 * 1024;  // a record's most
  ERR_clear_error();
  for (;;) {
    const std::size_t held = text.size();
    text.resize(held + piece);
    const int got = SSL_read(ssl_.get(), text.data() + held, piece);
    text.resize(held + static_cast<std::size_t>(std::max(got, 0)));
    if (got > 0) continue;
    const int why = SSL_get_error(ssl_.get(), got);
    if (why == SSL_ERROR_ZERO_RETURN) return true;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return false;
    return fault("cannot read from");
  }
}

}  // namespace loam::http
