// A program without OpenCL that looks functions up in every way, also from a constructor; run under
// the guard and without it, it must print the same.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

namespace {

// "where" a symbol lies: the file's last name, or "none".
const char* place(void* symbol) {
  Dl_info info{};
  if (!symbol || !::dladdr(symbol, &info)) return "none";
  const char* const slash = std::strrchr(info.dli_fname, '/');
  return slash ? slash + 1 : info.dli_fname;
}

void* from_constructor = nullptr;

// The oldest version of the C library's names on this processor.
#if defined(__x86_64__)
const char* const base_version = "GLIBC_2.2.5";
#else
const char* const base_version = "GLIBC_2.17";
#endif

__attribute__((constructor)) void early() {
  for (int i = 0; i < 1000; ++i) from_constructor = ::dlsym(RTLD_NEXT, "malloc");
}

}  // namespace

// The program's own function, of a name that the C library has too.
extern "C" int puts(const char* text) {
  return std::printf("%s\n", text) > 0 ? 1 : -1;
}
// And one with a name of OpenCL's.
extern "C" __attribute__((visibility("default"), used)) int clOwnThing() {
  return 7;
}

int main() {
  std::printf("constructor %s\n", place(from_constructor));
  std::printf("next malloc %s\n", place(::dlsym(RTLD_NEXT, "malloc")));
  std::printf("next puts %s\n", place(::dlsym(RTLD_NEXT, "puts")));
  std::printf("default malloc %s\n", place(::dlsym(RTLD_DEFAULT, "malloc")));
  std::printf("unknown %s\n", place(::dlsym(RTLD_DEFAULT, "clNoSuchThing")));
  std::printf("error %s\n", ::dlerror() ? "said" : "not said");
  void* const library = ::dlopen("libc.so.6", RTLD_NOW);
  std::printf("in libc: clCreateBuffer %s\n", place(::dlsym(library, "clCreateBuffer")));
  std::printf("error %s\n", ::dlerror() ? "said" : "not said");
  std::printf("in libc: clock %s\n", place(::dlsym(library, "clock")));
  std::printf("version: malloc %s\n", place(::dlvsym(RTLD_NEXT, "malloc", base_version)));
  std::printf("version: own puts %s\n", place(::dlvsym(RTLD_NEXT, "puts", base_version)));
  std::printf("no version: malloc %s\n", place(::dlvsym(library, "malloc", "GLIBC_9.99")));
  std::printf("error %s\n", ::dlerror() ? "said" : "not said");
  std::printf("version: clNoSuchThing %s\n", place(::dlvsym(library, "clNoSuchThing", "V1")));
  std::printf("error %s\n", ::dlerror() ? "said" : "not said");
  // A dlsym that was looked up answers like the plain one, also for "the next after me".
  using Lookup = void* (*)(void*, const char*);
  const auto behind = reinterpret_cast<Lookup>(::dlvsym(RTLD_NEXT, "dlsym", base_version));
  std::printf("behind: malloc %s\n", behind ? place(behind(RTLD_NEXT, "malloc")) : "no dlsym");
  std::printf("behind: next puts %s\n", behind ? place(behind(RTLD_NEXT, "puts")) : "no dlsym");
  return 0;
}
