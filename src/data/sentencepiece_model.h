// Declares the check of a SentencePiece model.

#pragma once

#include <string>
#include <string_view>

namespace nsimplex::data {

/// The reason why a serialized SentencePiece model must not reach the library that reads it; empty
/// if it is safe.
///
/// A checkpoint carries such a model, and it may come from anywhere. The library checks most of it,
/// but it follows the tables of its text normalizer without checking where they lead. So this
/// function reads the message as sentencepiece_model.proto describes it and refuses
///   - bytes that are not a message of that shape, or that end too early;
///   - pieces that are not UTF-8, and scores that are not finite;
///   - a table of the normalizer from which some text leads outside of it.
/// Time and memory are proportional to the bytes.
std::string fault_of_sentencepiece(std::string_view model);

}  // namespace nsimplex::data
