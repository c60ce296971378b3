// A file system that fails on command, over the real one.
//
//   full_after    bytes that fit; the write that goes past them stores what fits and throws Failure, as a full disk
//   does crash_at      number of the operation that the power fails at (each write, sync, rename ... is one). It throws
//   Crash,
//                 every later operation does too, and power_cycle() then takes from the disk what was not made durable:
//                 bytes after a file's last sync, and names and renames after their folder's last sync_directory. With
//                 `keep_unsynced` the disk happened to store all of it: both worlds must be survivable.
//
// Nothing is really flushed, so tests that save often are quick. A removal that the crash hits has removed the first
// half of the folder's files.
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "checkpoint/file_system.h"
#include "core/error.h"

namespace ridgeline::checkpoint {

struct Crash {};

class FaultyFileSystem final : public FileSystem {
 public:
  uint64_t full_after = std::numeric_limits<uint64_t>::max();
  int64_t crash_at = std::numeric_limits<int64_t>::max();
  bool keep_unsynced = false;
  uint64_t free = std::numeric_limits<uint64_t>::max();

  int64_t operations() const { return operations_; }
  uint64_t bytes_written() const { return written_; }

  std::unique_ptr<OutputFile> create(const Path& path) override {
    step();
    auto file = real_file_system().create(path);
    durable_[path] = 0;
    new_names_.push_back({path, {}});
    return std::make_unique<File>(*this, path, std::move(file));
  }
  void make_folders(const Path& path) override {
    step();
    std::filesystem::create_directories(path);
  }
  void rename(const Path& from, const Path& to) override {
    step();
    real_file_system().rename(from, to);
    move_records(from, to);
    new_names_.push_back({to, from});
  }
  void remove_file(const Path& path) override {
    step();
    real_file_system().remove_file(path);
  }
  void remove_folder(const Path& path) override {
    step([&] {
      const std::vector<std::string> names = list_folder(path);
      for (size_t name = 0; name < names.size() / 2; ++name) std::filesystem::remove_all(path / names[name]);
    });
    real_file_system().remove_folder(path);
  }
  void sync_directory(const Path& path) override {
    step();
    std::erase_if(new_names_, [&](const NewName& name) { return name.path.parent_path() == path; });
  }
  uint64_t free_bytes(const Path&) override { return free; }

  // What a machine finds when it starts again.
  void power_cycle() {
    if (keep_unsynced) return;
    while (!new_names_.empty()) {
      const NewName name = new_names_.back();
      new_names_.pop_back();
      if (name.before.empty()) {
        std::filesystem::remove(name.path);
      } else if (std::filesystem::exists(name.path)) {
        std::filesystem::rename(name.path, name.before);
        move_records(name.path, name.before);
      }
    }
    for (const auto& [path, size] : durable_) {
      if (std::filesystem::exists(path) && std::filesystem::file_size(path) > size) {
        std::filesystem::resize_file(path, size);
      }
    }
  }

 private:
  struct NewName {
    Path path;
    Path before;  // what a rename took it from; empty for a file that was created
  };

  class File final : public OutputFile {
   public:
    File(FaultyFileSystem& owner, Path path, std::unique_ptr<OutputFile> file)
        : owner_(owner), path_(std::move(path)), file_(std::move(file)) {}
    void write(std::span<const std::byte> bytes) override {
      owner_.step([&] { file_->write(bytes.first(bytes.size() / 2)); });
      const uint64_t room = owner_.full_after - owner_.written_;
      const auto fitting = bytes.first(std::min<uint64_t>(room, bytes.size()));
      file_->write(fitting);
      size_ += fitting.size();
      owner_.written_ += fitting.size();
      if (fitting.size() < bytes.size()) throw Failure("cannot write {}: No space left on device", path_.string());
    }
    void sync() override {
      owner_.step();
      owner_.durable_[path_] = size_;
    }
    void close() override {
      owner_.step();
      file_->close();
    }

   private:
    FaultyFileSystem& owner_;
    Path path_;
    std::unique_ptr<OutputFile> file_;
    uint64_t size_ = 0;
  };

  void step(const std::function<void()>& half = {}) {
    if (operations_ > crash_at) throw Crash();
    if (operations_++ == crash_at) {
      if (half) half();
      throw Crash();
    }
  }

  // What is known of the files in a folder follows it when it is renamed.
  void move_records(const Path& from, const Path& to) {
    auto moved = [&](const Path& path) { return path.parent_path() == from ? to / path.filename() : path; };
    std::map<Path, uint64_t> durable;
    for (const auto& [path, size] : durable_) durable[moved(path)] = size;
    durable_ = std::move(durable);
    for (NewName& name : new_names_) name.path = moved(name.path);
  }

  int64_t operations_ = 0;
  uint64_t written_ = 0;
  std::map<Path, uint64_t> durable_;  // bytes of each file that survive
  std::vector<NewName> new_names_;
};

}  // namespace ridgeline::checkpoint
