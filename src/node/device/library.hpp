// A shared library opened at run time. Never closed again: drivers start threads and register
// exit handlers, and unloading them under those is what crashes.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace loam::node {

class Library {
 public:
  // Opens the first of `names` that opens. Fails with not_found and the loader's words where none
  // is installed, with unsupported where one is there and does not load.
  static Result<Library> open(const std::vector<std::string>& names);

  const std::string& name() const { return name_; }

  // Puts the address of `symbol` into `function`; null and false where the library lacks it.
  template <class Function>
  bool find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(address_of(symbol));
    return function != nullptr;
  }
  // The same, and remembers the name of what is missing.
  template <class Function>
  void require(const char* symbol, Function*& function, std::vector<std::string>& missing) const {
    if (!find(symbol, function)) missing.emplace_back(symbol);
  }

 private:
  Library(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  void* address_of(const char* symbol) const;

  std::string name_;
  void* handle_;
};

// "libx.so.1 lacks a, b: …", for a warning.
std::string lacks_text(const Library& library, const std::vector<std::string>& missing);

}  // namespace loam::node
