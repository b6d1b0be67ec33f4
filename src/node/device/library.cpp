#include "node/device/library.hpp"

#include <dlfcn.h>

#include <string_view>

namespace loam::node {

Result<Library> Library::open(const std::vector<std::string>& names) {
  std::string words;
  bool present = false;
  for (const std::string& name : names) {
    if (void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return Library(name, handle);
    }
    const char* fault = ::dlerror();
    const std::string text = fault != nullptr ? fault : name + " does not open";
    // glibc's words for an absent file; anything else means that it is there and broken. A library
    // that itself needs an absent one says the same of that other name, hence the prefix.
    const bool absent = text.starts_with(name + ": cannot open shared object file: No such file");
    if (!absent || words.empty()) words = text;
    if (!absent) {
      present = true;
      break;
    }
  }
  if (!present) return Error{ErrorKind::not_found, words, "install the driver that brings it"};
  return Error{ErrorKind::unsupported, words, "reinstall the driver that brings it"};
}

void* Library::address_of(const char* symbol) const {
  return ::dlsym(handle_, symbol);
}

std::string lacks_text(const Library& library, const std::vector<std::string>& missing) {
  std::string text = library.name() + " lacks ";
  for (std::size_t i = 0; i < missing.size(); ++i) text += (i > 0 ? ", " : "") + missing[i];
  return text + ": it is too old or not what its name says; its devices are not used";
}

}  // namespace loam::node
