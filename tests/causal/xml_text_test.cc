#include "causal/graph/graph_text.h"

#include <gtest/gtest.h>

namespace nsimplex::causal {
namespace {

TEST(XmlText, KeepsCharactersAndEscapesTheSyntax) {
  EXPECT_EQ(xml_text("a<b>&\"c\" 'd'\t\n"), "a&lt;b&gt;&amp;&quot;c&quot; 'd'\t\n");
  EXPECT_EQ(xml_text("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F"),
            "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\x7F");
  EXPECT_EQ(xml_text("]]>"), "]]&gt;");
  EXPECT_EQ(xml_text(""), "");
}

TEST(XmlText, ShowsWhatXmlHasNoPlaceFor) {
  EXPECT_EQ(xml_text(std::string_view("\0\x01\x1B\x1F", 4)),
            "\xE2\x90\x80\xE2\x90\x81\xE2\x90\x9B\xE2\x90\x9F");
  EXPECT_EQ(xml_text("a\rb"), "a&#13;b");
}

TEST(XmlText, ReplacesWhatIsNoCharacter) {
  const std::string none = "\xEF\xBF\xBD";
  EXPECT_EQ(xml_text("caf\xE9"), "caf" + none);             // Latin-1
  EXPECT_EQ(xml_text("\xC0\x80"), none + none);             // overlong
  EXPECT_EQ(xml_text("\xED\xA0\x80"), none + none + none);  // a surrogate
  EXPECT_EQ(xml_text("\xEF\xBF\xBF"), none + none + none);  // U+FFFF
  EXPECT_EQ(xml_text("\xF5\x80\x80\x80"), none + none + none + none);
  EXPECT_EQ(xml_text("\xE2\x82"), none + none);  // cut short
  EXPECT_EQ(xml_text("\xE2\x82<"), none + none + "&lt;");
}

}  // namespace
}  // namespace nsimplex::causal
