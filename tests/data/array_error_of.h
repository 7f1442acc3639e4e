#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "input_error_of.h"

namespace nsimplex::test {

/// What a call's InputError says of an array of the file: "NAME: .."
template <class Call>
std::string array_error_of(const std::string& path, Call&& call) {
  const std::string text = input_error_of(std::forward<Call>(call));
  const std::string start = "cannot read " + path + ", array ";
  EXPECT_TRUE(text.starts_with(start)) << text;
  return text.substr(std::min(start.size(), text.size()));
}

}  // namespace nsimplex::test
