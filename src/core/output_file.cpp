#include "core/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/write_all.h"

namespace ridgeline {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp") {
  std::error_code error;
  if (std::filesystem::exists(path_, error) && !std::filesystem::is_regular_file(path_, error)) {
    throw InputError("{}: is not a regular file; expected the path of a file to write or replace", path_);
  }
  const auto folder = std::filesystem::path(path_).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) {
    throw Failure("{}: the folder cannot be made: {}; choose a path that can be written", folder.string(),
                  error.message());
  }
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail("cannot be made", errno);
  buffer_.reserve(kBufferBytes);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!published_) ::unlink(temporary_.c_str());
}

void OutputFile::fail(const char* what, int error) const {
  throw Failure("{}: {} after {} bytes: {}; nothing was changed at {}", temporary_, what, written_,
                std::strerror(error), path_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  RIDGELINE_ASSERT(descriptor_ >= 0);
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  if (bytes.size() > kBufferBytes) {
    write_through(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void OutputFile::write_through(std::span<const std::byte> bytes) {
  const auto outcome = write_all(descriptor_, bytes);
  written_ += outcome.written;
  if (outcome.error != 0) fail("cannot be written", outcome.error);
}

void OutputFile::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void OutputFile::close() {
  if (descriptor_ < 0) return;
  flush();
  if (::fsync(descriptor_) != 0 && errno != EINVAL) fail("cannot be synchronised", errno);
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0 && errno != EINTR) fail("cannot be closed", errno);
}

void OutputFile::publish() {
  close();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be renamed", errno);
  published_ = true;
  const auto folder = std::filesystem::path(path_).parent_path();
  if (const int error = synchronise_folder(folder.empty() ? "." : folder.string()); error != 0) {
    throw Failure("{}: the folder cannot be synchronised: {}", folder.string(), std::strerror(error));
  }
}

void write_whole_file(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.write_array(std::span<const char>(text));
  file.publish();
}

}  // namespace ridgeline
