#include "train/clock_offset.h"

#include <ATen/ATen.h>
#include <unistd.h>

#include <limits>
#include <map>
#include <vector>

#include "checkpoint/checksum.h"
#include "launch/boot.h"

namespace ridgeline::train {
namespace {

constexpr int kExchanges = 12;

at::TensorOptions options_of(const mesh::Mesh& mesh, at::ScalarType type) {
  return at::TensorOptions().dtype(type).device(mesh.device().torch());
}

std::vector<int64_t> gather(const mesh::Mesh& mesh, int64_t value) {
  const at::Tensor all = at::empty({mesh.world().size()}, options_of(mesh, at::kLong));
  mesh.world().all_gather(all, at::full({1}, value, all.options())).wait();
  const at::Tensor host = all.cpu();
  return {host.const_data_ptr<int64_t>(), host.const_data_ptr<int64_t>() + host.numel()};
}

void answer(const mesh::Mesh& mesh, int64_t asker, const std::function<double()>& now) {
  const at::Tensor message = at::zeros({1}, options_of(mesh, at::kDouble));
  for (int exchange = 0; exchange < kExchanges; ++exchange) {
    mesh.world().receive(message, asker).wait();
    mesh.device().synchronize();
    message.fill_(now());
    mesh.world().send(message, asker).wait();
  }
}

ClockOffset ask(const mesh::Mesh& mesh, const std::function<double()>& now) {
  ClockOffset best{0, std::numeric_limits<double>::infinity()};
  const at::Tensor message = at::zeros({1}, options_of(mesh, at::kDouble));
  for (int exchange = 0; exchange < kExchanges; ++exchange) {
    const double sent = now();
    mesh.world().send(message, 0).wait();
    mesh.world().receive(message, 0).wait();
    const double theirs = message.item<double>();
    const double received = now();
    const double uncertainty = (received - sent) / 2;
    if (uncertainty < best.uncertainty) best = {theirs - (sent + received) / 2, uncertainty};
  }
  return best;
}

}  // namespace

std::string clock_identity() {
  const std::string identity = launch::boot_identity();
  if (!identity.empty()) return identity;
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

ClockOffset clock_offset(const mesh::Mesh& mesh, const std::string& identity, const std::function<double()>& now) {
  const int64_t rank = mesh.world().rank();
  const std::span<const char> letters(identity);
  const std::vector<int64_t> hosts =
      gather(mesh, static_cast<int64_t>(checkpoint::checksum_of(std::as_bytes(letters))));
  std::map<int64_t, int64_t> first;  // rank of each machine that asks for it
  for (int64_t other = 0; other < static_cast<int64_t>(hosts.size()); ++other) first.try_emplace(hosts[other], other);
  ClockOffset mine;
  for (const auto& [host, asker] : first) {
    if (asker == 0) continue;
    if (rank == 0) answer(mesh, asker, now);
    if (rank == asker) mine = ask(mesh, now);
  }
  const at::Tensor all = at::empty({mesh.world().size(), 2}, options_of(mesh, at::kDouble));
  const at::Tensor own = at::tensor({mine.seconds, mine.uncertainty}, at::kDouble).view({1, 2}).to(all.device());
  mesh.world().all_gather(all, own).wait();
  const at::Tensor of_machine = all[first.at(hosts[rank])].cpu();
  return {of_machine[0].item<double>(), of_machine[1].item<double>()};
}

}  // namespace ridgeline::train
