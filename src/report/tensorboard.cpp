#include "report/tensorboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <vector>

#include "core/error.h"
#include "core/write_all.h"
#include "report/crc32c.h"

namespace ridgeline::report {
namespace {

static_assert(std::endian::native == std::endian::little, "event files are written as the machine's own numbers");

// Protocol buffer wire types.
constexpr unsigned kVarint = 0;
constexpr unsigned kFixed64 = 1;
constexpr unsigned kBytes = 2;
constexpr unsigned kFixed32 = 5;

template <typename T>
void put_raw(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_varint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}
void put_key(std::string& out, unsigned field, unsigned type) { put_varint(out, field << 3 | type); }
void put_integer(std::string& out, unsigned field, int64_t value) {
  put_key(out, field, kVarint);
  put_varint(out, static_cast<uint64_t>(value));
}
void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event(int64_t step) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string out;
  put_key(out, 1, kFixed64);
  put_raw(out, std::chrono::duration<double>(now).count());
  put_integer(out, 2, step);
  return out;
}

uint32_t masked_crc(std::string_view bytes) {
  const auto crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

}  // namespace

EventFile::EventFile(const std::string& folder, int64_t resumed_step) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const auto base = fmt::format("{}/events.out.tfevents.{:010}.{}.{}", folder, static_cast<int64_t>(std::time(nullptr)),
                                host_name(), ::getpid());
  // A second file of the same process and second gets a name of its own.
  for (int copy = 0; descriptor_ < 0; ++copy) {
    path_ = copy == 0 ? base : fmt::format("{}.{}", base, copy);
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno != EEXIST) throw Failure("{}: cannot be made: {}", path_, std::strerror(errno));
  }
  auto version = event(0);
  put_bytes(version, 3, "brain.Event:2");
  write_record(version);
  if (resumed_step > 0) {
    // A session that starts at a step makes everything earlier files say of that step and later ones void.
    std::string start;
    put_integer(start, 1, 1);  // SessionLog.status = START
    auto session = event(resumed_step + 1);
    put_bytes(session, 7, start);
    write_record(session);
  }
}

EventFile::~EventFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void EventFile::scalars(int64_t step, std::span<const Scalar> values) {
  std::string summary;
  for (const auto& scalar : values) {
    std::string value;
    put_bytes(value, 1, scalar.tag);
    put_key(value, 2, kFixed32);
    put_raw(value, static_cast<float>(scalar.value));
    put_bytes(summary, 1, value);
  }
  auto record = event(step);
  put_bytes(record, 5, summary);
  write_record(record);
}

void EventFile::step_metrics(const StepMetrics& metrics) {
  constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
  std::vector<Scalar> values = {{"train/loss", metrics.loss},
                                {"train/grad_norm", metrics.grad_norm},
                                {"train/lr", metrics.lr},
                                {"train/tokens", static_cast<double>(metrics.tokens)},
                                {"speed/step_seconds", metrics.step_seconds},
                                {"speed/tokens_per_second", metrics.tokens_per_second},
                                {"speed/tflops_per_device", metrics.tflops_per_device},
                                {"memory/peak_gib", static_cast<double>(metrics.peak_memory) / kGib}};
  if (metrics.mfu) values.push_back({"speed/mfu", *metrics.mfu});
  if (metrics.hfu) values.push_back({"speed/hfu", *metrics.hfu});
  if (metrics.auxiliary_loss) values.push_back({"train/auxiliary_loss", *metrics.auxiliary_loss});
  if (metrics.validation_loss) values.push_back({"validation/loss", *metrics.validation_loss});
  if (metrics.loss_scale) values.push_back({"train/loss_scale", *metrics.loss_scale});
  scalars(metrics.step, values);
}

void EventFile::write_record(const std::string& event) {
  std::string record;
  put_raw(record, static_cast<uint64_t>(event.size()));
  put_raw(record, masked_crc(record));
  record += event;
  put_raw(record, masked_crc(event));
  const auto outcome = write_all(descriptor_, std::as_bytes(std::span(record)));
  if (outcome.error != 0) throw Failure("{}: cannot be written: {}", path_, std::strerror(outcome.error));
}

}  // namespace ridgeline::report
