#include "data/text_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace ridgeline::data {

TextReader::TextReader(const std::string& path) : path_(path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw InputError("{}: cannot be opened: {}", path, std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw InputError("{}: is not a regular file; expected a text file (name the files of a folder one by one)", path);
  }
  size_ = status.st_size;
  file_ = ::gzdopen(descriptor, "rb");
  if (file_ == nullptr) {
    ::close(descriptor);
    throw Failure("{}: no memory to read it", path);
  }
  ::gzbuffer(file_, 1U << 18);
}

TextReader::~TextReader() { ::gzclose_r(file_); }

void TextReader::fail(const char* reason) const {
  throw InputError("{}: near byte {} of {}: {}; expected plain text or a whole gzip file", path_, position(), size_,
                   reason);
}

size_t TextReader::read(std::span<char> out) {
  const int count = ::gzread(file_, out.data(), static_cast<unsigned>(out.size()));
  // A gzip file that ends too soon gives what there is, and says so only in the error state.
  int code = Z_OK;
  const char* reason = ::gzerror(file_, &code);
  if (code == Z_ERRNO) throw Failure("{}: cannot be read: {}", path_, std::strerror(errno));
  if (code == Z_BUF_ERROR) fail("the compressed data is cut short");
  if (count < 0 || (code != Z_OK && code != Z_STREAM_END)) fail(reason);
  return static_cast<size_t>(count);
}

int64_t TextReader::position() const {
  const auto offset = ::gzoffset(file_);
  return offset < 0 ? 0 : offset;
}

}  // namespace ridgeline::data
