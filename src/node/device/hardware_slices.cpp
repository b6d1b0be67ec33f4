// What is alike for every way of cutting a card: choosing, recording, reviewing after a restart.
#include "node/device/hardware_slices.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace loam::node {

schedule::MigLayout SlicedCard::layout() const {
  schedule::MigLayout found;
  for (const auto* list : {&slices, &half_made})
    for (const HardwareSlice& slice : *list)
      for (std::size_t i = 0; i < geometry.profiles.size(); ++i)
        if (geometry.profiles[i].name == slice.profile) found.push_back({i, slice.start});
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<SliceChoice> choose_slice(const SlicedCard& card, Mebibytes memory,
                                        std::int32_t share_milli) {
  if (!card.enabled) return std::nullopt;
  const schedule::MigLayout layout = card.layout();
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < card.geometry.profiles.size(); ++i) {
    const schedule::MigProfile& profile = card.geometry.profiles[i];
    const std::int64_t share =
        std::int64_t{1000} * profile.compute_slices / card.geometry.compute_slices;
    if (profile.memory.value < memory.value || share < share_milli) continue;
    if (schedule::free_starts(card.geometry, layout, i).empty()) continue;
    const auto size = [&](std::size_t p) {
      const schedule::MigProfile& of = card.geometry.profiles[p];
      return std::pair(of.compute_slices, of.memory_slots);
    };
    if (!best || size(i) < size(*best)) best = i;
  }
  if (!best) return std::nullopt;
  const auto start = schedule::best_start(card.geometry, layout, *best);
  if (!start) return std::nullopt;
  return SliceChoice{card.geometry.profiles[*best].name, *start};
}

namespace {

std::string begun_line(const std::string& profile, std::int32_t start) {
  return "begun " + profile + " " + std::to_string(start);
}
std::string made_line(const HardwareSlice& slice) {
  return "made " + slice.uuid + " " + slice.profile + " " + std::to_string(slice.start);
}
std::string describe(const HardwareSlice& slice) {
  return "slice " + (slice.uuid.empty() ? "number " + std::to_string(slice.instance) : slice.uuid) +
         " (" + slice.profile + " at slot " + std::to_string(slice.start) + ")";
}

}  // namespace

Result<std::vector<std::string>> SliceJournal::lines(const std::string& card) const {
  std::vector<std::string> all;
  std::ifstream file(folder_ + "/" + card);
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) all.push_back(line);
  return all;
}

Result<void> SliceJournal::write(const std::string& card, const std::vector<std::string>& lines) {
  std::error_code fault;
  std::filesystem::create_directories(folder_, fault);
  const std::string path = folder_ + "/" + card;
  {
    std::ofstream file(path + ".new", std::ios::trunc);
    for (const std::string& line : lines) file << line << "\n";
    file.flush();
    if (!file)
      return Error{ErrorKind::unavailable, "cannot write " + path,
                   "check the space and the permissions"};
  }
  std::filesystem::rename(path + ".new", path, fault);
  if (fault)
    return Error{ErrorKind::unavailable, "cannot write " + path + ": " + fault.message(), ""};
  return {};
}

Result<void> SliceJournal::begun(const std::string& card, const std::string& profile,
                                 std::int32_t start) {
  LOAM_TRY(all, lines(card));
  all.push_back(begun_line(profile, start));
  return write(card, all);
}

Result<void> SliceJournal::made(const std::string& card, const HardwareSlice& slice) {
  LOAM_TRY(all, lines(card));
  std::erase(all, begun_line(slice.profile, slice.start));
  all.push_back(made_line(slice));
  return write(card, all);
}

Result<void> SliceJournal::ended(const std::string& card, const HardwareSlice& slice) {
  LOAM_TRY(all, lines(card));
  std::erase(all, begun_line(slice.profile, slice.start));
  std::erase(all, made_line(slice));
  return write(card, all);
}

Result<HardwareSlice> create_recorded(HardwareSlicer& slicer, SliceJournal& journal,
                                      const std::string& card, const std::string& profile,
                                      std::int32_t start) {
  LOAM_CHECK(journal.begun(card, profile, start));
  auto slice = slicer.create(card, profile, start);
  if (slice) {
    LOAM_CHECK(journal.made(card, *slice));
    return slice;
  }
  // The line stays where something half made stayed: the next review removes it.
  const auto after = slicer.read(card);
  const bool left = after && std::any_of(after->half_made.begin(), after->half_made.end(),
                                         [&](const HardwareSlice& half) {
                                           return half.profile == profile && half.start == start;
                                         });
  if (!left) {
    HardwareSlice never;
    never.profile = profile;
    never.start = start;
    LOAM_CHECK(journal.ended(card, never));
  }
  return slice;
}

Result<SliceReview> review_slices(HardwareSlicer& slicer, SliceJournal& journal,
                                  const std::string& card, bool adopt_unknown) {
  LOAM_TRY(found, slicer.read(card));
  LOAM_TRY(known, journal.lines(card));
  const auto has = [&](const std::string& line) {
    return std::find(known.begin(), known.end(), line) != known.end();
  };
  SliceReview review;
  for (const HardwareSlice& half : found.half_made) {
    if (!has(begun_line(half.profile, half.start))) {
      review.messages.push_back(describe(half) + " on " + card +
                                " is half made and not by this node: it is left alone and its "
                                "slots are not used; remove it by the driver's own tool");
      continue;
    }
    if (const auto gone = slicer.destroy(card, half); !gone)
      review.messages.push_back(
          describe(half) + " was left half made and cannot be removed: " + to_text(gone.error()));
    else
      LOAM_CHECK(journal.ended(card, half));
  }
  for (const HardwareSlice& slice : found.slices) {
    if (has(made_line(slice)) || has(begun_line(slice.profile, slice.start)) || adopt_unknown) {
      LOAM_CHECK(journal.ended(card, slice));
      LOAM_CHECK(journal.made(card, slice));
      review.adopted.push_back(slice);
      continue;
    }
    review.messages.push_back(describe(slice) + " on " + card +
                              " was not made by this node: it is not used; adopt it in the "
                              "configuration or remove it by the driver's own tool");
  }
  return review;
}

}  // namespace loam::node
