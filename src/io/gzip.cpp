// Unpacks files that gzip packed.

#include "io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace nsimplex::io {

bool is_gzip(const Source& source) { return source.starts_with("\x1f\x8b"); }

std::vector<uint8_t> gunzipped(const Source& source) {
  constexpr int kGzip = 16;  // of the window bits: the format that zlib expects
  constexpr uint64_t kMostAtOnce = std::numeric_limits<uInt>::max();
  constexpr size_t kFirstRoom = size_t{64} * 1024;
  z_stream stream{};
  if (inflateInit2(&stream, MAX_WBITS + kGzip) != Z_OK) source.fail("zlib could not start");
  std::vector<uint8_t> result;
  size_t read = 0, written = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    if (written == result.size()) result.resize(std::max(kFirstRoom, 2 * written));
    const auto room_in = static_cast<uInt>(std::min(source.bytes.size() - read, kMostAtOnce));
    const auto room_out = static_cast<uInt>(std::min(result.size() - written, kMostAtOnce));
    stream.next_in = const_cast<Bytef*>(source.bytes.data() + read);
    stream.avail_in = room_in;
    stream.next_out = result.data() + written;
    stream.avail_out = room_out;
    state = inflate(&stream, Z_NO_FLUSH);
    read += room_in - stream.avail_in;
    written += room_out - stream.avail_out;
    const bool another = state == Z_STREAM_END && read < source.bytes.size();
    if (another) state = inflateReset(&stream);
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END) source.fail("gzip: its compressed data are damaged or truncated");
  result.resize(written);
  return result;
}

}  // namespace nsimplex::io
