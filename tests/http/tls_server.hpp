// A server that speaks TLS, with an authority of its own: what a test says to each request, on a
// thread, one connection at a time. Keys and certificates are made when it starts.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace loam::http {

template <auto free_it>
struct SslFree {
  template <class T>
  void operator()(T* raw) const noexcept {
    free_it(raw);
  }
};
using Key = std::unique_ptr<EVP_PKEY, SslFree<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, SslFree<X509_free>>;

inline Key make_key() {
  return Key(EVP_EC_gen("P-256"));
}

inline void extend(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Signed by `issuer` with its key; by itself where there is none. `names`: "DNS:localhost".
inline Certificate make_certificate(const std::string& subject, const std::string& names,
                                    EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key,
                                    long valid_seconds = 3600) {
  static std::atomic<long> serial = 1;
  Certificate made(X509_new());
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), serial++);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -7200);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), valid_seconds);
  X509_set_pubkey(made.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(subject.c_str()), -1, -1, 0);
  X509* by = issuer == nullptr ? made.get() : issuer;
  X509_set_issuer_name(made.get(), X509_get_subject_name(by));
  extend(made.get(), by, NID_basic_constraints,
         issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
  if (!names.empty()) extend(made.get(), by, NID_subject_alt_name, names);
  X509_sign(made.get(), issuer_key == nullptr ? key : issuer_key, EVP_sha256());
  return made;
}

class TlsServer {
 public:
  struct Options {
    std::string names = "DNS:localhost,IP:127.0.0.1";
    long valid_seconds = 3600;  // of its certificate; below zero: it has run out
    int max_version = TLS1_3_VERSION;
    bool says_goodbye = true;  // else the connection is cut after the answer
  };
  // Gets the bytes of a request up to its length, gives those of the answer.
  using Answer = std::function<std::string(const std::string& request)>;

  explicit TlsServer(Answer answer) : TlsServer(std::move(answer), Options{}) {}
  TlsServer(Answer answer, Options options)
      : answer_(std::move(answer)), options_(std::move(options)) {
    ca_key_ = make_key();
    ca_ = make_certificate("Test authority", "", ca_key_.get(), nullptr, nullptr);
    key_ = make_key();
    certificate_ = make_certificate("Test server", options_.names, key_.get(), ca_.get(),
                                    ca_key_.get(), options_.valid_seconds);
    context_.reset(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_set_max_proto_version(context_.get(), options_.max_version);
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    SSL_CTX_set_security_level(context_.get(), 0);
    SSL_CTX_use_certificate(context_.get(), certificate_.get());
    SSL_CTX_use_PrivateKey(context_.get(), key_.get());
    listen();
    thread_ = std::thread([this] { run(); });
  }
  ~TlsServer() {
    stopping_ = true;
    thread_.join();
    ::close(listener_);
  }
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  int port() const { return port_; }
  void write_ca(const std::string& path) const {
    std::FILE* file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    PEM_write_X509(file, ca_.get());
    std::fclose(file);
  }

 private:
  void listen() {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ASSERT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), length), 0);
    ASSERT_EQ(::listen(listener_, 16), 0);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
  }

  void run() {
    sigset_t no_reader;
    sigemptyset(&no_reader);
    sigaddset(&no_reader, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &no_reader, nullptr);
    while (!stopping_) {
      pollfd one{listener_, POLLIN, 0};
      if (::poll(&one, 1, 20) != 1) continue;
      const int fd = ::accept(listener_, nullptr, nullptr);
      if (fd < 0) continue;
      const timeval patience{20, 0};
      ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      serve(fd);
      ::close(fd);
    }
  }

  void serve(int fd) {
    std::unique_ptr<SSL, SslFree<SSL_free>> ssl(SSL_new(context_.get()));
    SSL_set_fd(ssl.get(), fd);
    if (SSL_accept(ssl.get()) != 1) return;
    std::string request;
    char piece[4096];
    std::size_t wanted = std::string::npos;
    while (request.size() < wanted) {
      const int got = SSL_read(ssl.get(), piece, sizeof piece);
      if (got <= 0) return;
      request.append(piece, static_cast<std::size_t>(got));
      const std::size_t head = request.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      const std::size_t length = request.find("Content-Length: ");
      wanted =
          head + 4 + (length < head ? std::stoul(request.substr(length + 16)) : std::size_t{0});
    }
    const std::string answer = answer_(request);
    for (std::size_t sent = 0; sent < answer.size();) {
      const int put =
          SSL_write(ssl.get(), answer.data() + sent, static_cast<int>(answer.size() - sent));
      if (put <= 0) return;
      sent += static_cast<std::size_t>(put);
    }
    if (options_.says_goodbye) SSL_shutdown(ssl.get());
  }

  Answer answer_;
  Options options_;
  Key ca_key_, key_;
  Certificate ca_, certificate_;
  std::unique_ptr<SSL_CTX, SslFree<SSL_CTX_free>> context_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace loam::http
