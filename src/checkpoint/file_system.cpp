#include "checkpoint/file_system.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/write_all.h"

namespace ridgeline::checkpoint {
namespace {

Failure failed(const char* what, const Path& path, int error) {
  const char* advice = "";
  if (error == ENOSPC || error == EDQUOT) advice = "; free space or raise the quota, then start again";
  return Failure("cannot {} {}: {}{}", what, path.string(), std::strerror(error), advice);
}

class PosixFile final : public OutputFile {
 public:
  explicit PosixFile(const Path& path)
      : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw failed("create", path_, errno);
  }
  ~PosixFile() override {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  void write(std::span<const std::byte> bytes) override {
    const WriteOutcome outcome = write_all(descriptor_, bytes);
    if (outcome.error != 0) throw failed("write", path_, outcome.error);
  }

  void sync() override {
    if (::fsync(descriptor_) != 0) throw failed("flush to disk", path_, errno);
  }

  void close() override {
    // Network file systems report a full disk as late as here.
    if (::close(std::exchange(descriptor_, -1)) != 0) throw failed("close", path_, errno);
  }

 private:
  Path path_;
  int descriptor_;
};

class PosixFileSystem final : public FileSystem {
 public:
  std::unique_ptr<OutputFile> create(const Path& path) override { return std::make_unique<PosixFile>(path); }

  void make_folders(const Path& path) override {
    std::error_code error;
    std::vector<Path> touched;
    for (Path missing = std::filesystem::absolute(path); !std::filesystem::exists(missing, error);) {
      missing = missing.parent_path();
      touched.push_back(missing);
    }
    std::filesystem::create_directories(path, error);
    if (error) throw failed("make the folder", path, error.value());
    // A checkpoint is only as durable as the name of the folder that it stands in.
    for (const Path& parent : touched) sync_directory(parent);
  }

  void rename(const Path& from, const Path& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      throw Failure("cannot rename {} to {}: {}", from.string(), to.string(), std::strerror(errno));
    }
  }

  void remove_file(const Path& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) throw failed("remove", path, errno);
  }

  void remove_folder(const Path& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    if (error) throw failed("remove", path, error.value());
  }

  void sync_directory(const Path& path) override {
    if (const int error = synchronise_folder(path.string())) throw failed("flush to disk the folder", path, error);
  }

  uint64_t free_bytes(const Path& path) override {
    struct statvfs status = {};
    if (::statvfs(path.c_str(), &status) != 0) throw failed("ask the free space of", path, errno);
    return static_cast<uint64_t>(status.f_bavail) * status.f_frsize;
  }
};

}  // namespace

FileSystem& real_file_system() {
  static PosixFileSystem file_system;
  return file_system;
}

void write_text(FileSystem& files, const Path& path, const std::string& text) {
  std::unique_ptr<OutputFile> file = files.create(path);
  file->write(std::as_bytes(std::span(text)));
  file->sync();
  file->close();
}

std::vector<std::string> list_folder(const Path& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory) {
    throw Failure("cannot list {}: {}", path.string(), error.message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ridgeline::checkpoint
