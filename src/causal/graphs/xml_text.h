#pragma once

#include <string>
#include <string_view>

namespace nsimplex::causal {

/// Text as it stands between the tags of an XML 1.0 file, well-formed whatever the bytes are: marks
/// of the syntax are escaped, control characters that XML has no place for become their pictures
/// (U+2400 and on), and what is no character in UTF-8 becomes U+FFFD.
std::string xml_text(std::string_view text);

}  // namespace nsimplex::causal
