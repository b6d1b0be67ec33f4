#include "app/loam/capacity.hpp"

#include "base/time.hpp"

namespace loam::cli {

Result<std::vector<billing::DeviceCapacity>> capacity_of(api::Client& client,
                                                         const billing::Period& period) {
  LOAM_TRY(list, client.capacity(to_text(period.from), to_text(period.to)));
  std::vector<billing::DeviceCapacity> devices;
  for (const api::CapacityPieceView& piece : list.pieces) {
    LOAM_TRY(ce, parse_ce(piece.ce));
    LOAM_TRY(from, parse_instant(piece.from));
    LOAM_TRY(to, parse_instant(piece.to));
    devices.push_back({piece.device, ce, from, to});
  }
  return devices;
}

}  // namespace loam::cli
