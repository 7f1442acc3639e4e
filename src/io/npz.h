#pragma once

#include <string>
#include <vector>

#include "io/array.h"
#include "io/zip.h"

namespace nsimplex::io {

/// Arrays by name, as numpy.savez and numpy.savez_compressed write them: a zip archive of npy
/// files. Folders and other files in the archive are passed over; an array is read when it is asked
/// for, so that one of pickled objects is no hindrance to the others. The bytes of the source must
/// live as long as this.
class Npz {
 public:
  explicit Npz(const Source& source);

  /// Names without ".npy", in the order of the archive.
  std::vector<std::string> names() const;

  bool has(const std::string& name) const { return find(name) != nullptr; }

  /// Fails where there is no such array or parse_npy() does.
  Array read(const std::string& name) const;

  /// The only array of two dimensions and of plain elements; fails where there is none or several.
  Array read_matrix() const;

  /// "train_data, nums_type"
  std::string list_of_names() const;

 private:
  const ZipEntry* find(const std::string& name) const;
  std::vector<uint8_t> contents(const std::string& name) const;
  Source array_source(const std::string& name, const std::vector<uint8_t>& bytes) const {
    return source_.inner("array " + name, bytes);
  }

  Source source_;
  Zip zip_;
};

}  // namespace nsimplex::io
