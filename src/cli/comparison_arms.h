#pragma once

#include <string>
#include <vector>

#include "training/comparison.h"

namespace nsimplex::cli {

/// The models of a comparison from their names: NAME[:WORD]..., NAME one of
///
///     ordinary   no simplicial layer
///     window     windowed simplicial layers
///     topk       simplicial layers over the keys that an indexer chooses
///     path       the same along paths
///     linear     separable simplicial layers
///
/// and words that change it: reuse or light, relu or softmax (the indexer's; default reuse,
/// softmax), loss (its alignment loss, with the weight of `base`), wide (an MLP so wide that the
/// model has as many weights as the largest of those that are not wide). Everything else is
/// `base`'s. Throws InputError that names the arm.
std::vector<training::Arm> comparison_arms(const std::vector<std::string>& names,
                                           const LanguageModelOptions& base);

/// The eight indexers: relu and softmax scores, reuse and light, without and with the loss.
std::vector<std::string> indexer_arms();

}  // namespace nsimplex::cli
