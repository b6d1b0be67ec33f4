// What the tests of the guard's CUDA side share: a node's folder with slice pages, the fake cards'
// books in it, and guests that find the driver in different ways.
#pragma once

#include "fakes/fake_cuda.hpp"
#include "guard/house.hpp"

namespace loam::node {

class CudaHouse : public House {
 protected:
  void SetUp() override {
    House::SetUp();
    const int fd = ::open(cards_path().c_str(), O_RDWR | O_CREAT, 0600);
    ASSERT_EQ(::ftruncate(fd, sizeof(fakes::FakeCudaBooks)), 0);
    void* const address =
        ::mmap(nullptr, sizeof(fakes::FakeCudaBooks), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(address, MAP_FAILED);
    ::close(fd);
    cards_ = static_cast<fakes::FakeCudaBooks*>(address);
    fakes::describe(cards_->devices[0], 0, "Fake H100", 132, 2048, 80ull << 30);
    fakes::describe(cards_->devices[1], 1, "Fake A100", 108, 2048, 40ull << 30);
    fakes::describe(cards_->devices[2], 2, "Fake neighbour's", 40, 1024, 16ull << 30);
    cards_->device_count = 3;
    cards_->version = 13000;
    cards_->ready = 1;
  }
  void TearDown() override {
    ::munmap(cards_, sizeof(fakes::FakeCudaBooks));
    House::TearDown();
  }

  std::string cards_path() const { return root_ + "/cards"; }
  fakes::FakeCudaBooks& cards() { return *cards_; }
  fakes::FakeCudaDevice& card(int number = 0) {
    return cards_->devices.at(static_cast<std::size_t>(number));
  }
  // The card's UUID as NVML spells it.
  static std::string uuid_of(const fakes::FakeCudaDevice& device) {
    char hex[33] = {};
    for (int i = 0; i < 16; ++i)
      std::snprintf(hex + 2 * i, 3, "%02x", static_cast<unsigned>(device.uuid[i]));
    char text[64];
    std::snprintf(text, sizeof text, "%s-%.8s-%.4s-%.4s-%.4s-%.12s",
                  device.mig_parent < 0 ? "GPU" : "MIG", hex, hex + 8, hex + 12, hex + 16,
                  hex + 20);
    return text;
  }
  SliceLimits cuda_slice(std::uint64_t memory_bytes, int number = 0, int share_milli = 1000) {
    SliceLimits slice;
    slice.device_key = uuid_device_key(uuid_of(card(number)));
    slice.device_name = card(number).name;
    slice.memory_bytes = memory_bytes;
    slice.share_milli = share_milli;
    return slice;
  }
  std::string cuda_folder_ = LOAM_FAKE_CUDA_FOLDER;
  Guest::Environment cuda_environment(const std::string& lease) const {
    return {{"LD_LIBRARY_PATH", cuda_folder_},
            {"LOAM_FAKE_CUDA", cards_path()},
            {"LD_PRELOAD", LOAM_GUARD_LIBRARY},
            {"LOAM_SLICE_PAGE", page_prefix(root_, lease)}};
  }
  std::unique_ptr<Guest> start_cuda_guest(const std::string& lease,
                                          const std::string& way = "linked") {
    return std::make_unique<Guest>(std::vector<std::string>{LOAM_CUDA_GUEST_PROGRAM, way},
                                   cuda_environment(lease));
  }
  // One that has a context on device 0.
  std::unique_ptr<Guest> open_guest(const std::string& lease, const std::string& way = "linked") {
    auto guest = start_cuda_guest(lease, way);
    EXPECT_EQ(guest->ask("open 0"), "ok") << guest->errors();
    return guest;
  }
  std::uint64_t used(const std::string& lease, std::size_t device = 0) {
    return usage(lease, device).memory_used_bytes;
  }

  fakes::FakeCudaBooks* cards_ = nullptr;
};

inline std::string mebibytes(std::uint64_t n) {
  return std::to_string(n * mib);
}

}  // namespace loam::node
