#include "io/samples.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace nsimplex::io {
namespace {

std::string little(uint64_t number, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

std::string deflated(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = text.size();
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = packed.size();
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

}  // namespace

std::string npy_file(const std::string& descr, const std::string& shape, const std::string& data,
                     bool fortran, int version) {
  const std::string quote = descr[0] == '[' ? "" : "'";
  const std::string header = "{'descr': " + quote + descr + quote +
                             ", 'fortran_order': " + (fortran ? "True" : "False") +
                             ", 'shape': " + shape + ", }  \n";
  return "\x93NUMPY" + little(version, 1) + little(0, 1) +
         little(header.size(), version == 1 ? 2 : 4) + header + data;
}

std::string zip_file(const std::vector<std::pair<std::string, std::string>>& files, bool deflate) {
  std::string archive, directory;
  for (const auto& [name, text] : files) {
    const std::string packed = deflate ? deflated(text) : text;
    const auto checksum = crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size());
    // version, flags, method, time, date, checksum, sizes, lengths of name and extra field
    const std::string facts = little(20, 2) + little(0, 2) + little(deflate ? 8 : 0, 2) +
                              little(0, 4) + little(checksum, 4) + little(packed.size(), 4) +
                              little(text.size(), 4) + little(name.size(), 2) + little(0, 2);
    directory += "PK\x01\x02" + little(20, 2) + facts + std::string(10, '\0') +
                 little(archive.size(), 4) + name;
    archive += "PK\x03\x04" + facts + name + packed;
  }
  return archive + directory + "PK\x05\x06" + little(0, 4) + little(files.size(), 2) +
         little(files.size(), 2) + little(directory.size(), 4) + little(archive.size(), 4) +
         little(0, 2);
}

}  // namespace nsimplex::io
