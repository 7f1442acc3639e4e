// Writes and reads checkpoints and model files of language models.

#include "train/checkpoint.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>

#include "io/input_file.h"
#include "io/output_file.h"
#include "nn/language_options.h"
#include "support/printable.h"
#include "support/require.h"
#include "train/stored_state.h"

namespace nsimplex::training {

// Token files are written only if the run reads some: runs on texts write the format of version
// 0.1.
static void to_json(nlohmann::json& json, const TextRecord& text) {
  json = {{"sources", text.sources},
          {"glob", text.glob},
          {"tokens", text.tokens},
          {"fingerprint", text.fingerprint}};
  if (text.token_files.empty()) return;
  json["token_files"] = text.token_files;
  json["validation_files"] = text.validation_files;
}

static void from_json(const nlohmann::json& json, TextRecord& text) {
  json.at("sources").get_to(text.sources);
  json.at("glob").get_to(text.glob);
  json.at("tokens").get_to(text.tokens);
  json.at("fingerprint").get_to(text.fingerprint);
  if (!json.contains("token_files")) return;
  json.at("token_files").get_to(text.token_files);
  json.at("validation_files").get_to(text.validation_files);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Progress, step, position, loss_sum, loss_steps, auxiliary_sum)

namespace {

using SortedJson = nlohmann::json;

constexpr char kFormat[] = "format", kState[] = "state";
// The kind of a file, followed by the number of its format. Format 1 has no checksums and stays
// readable.
constexpr std::string_view kCheckpoint = "nsimplex checkpoint ", kModel = "nsimplex model ";
constexpr std::string_view kNewest = "2", kWithoutChecksums = "1";
constexpr std::string_view kWeights = "model.", kOptimizer = "optimizer.";
constexpr char kGenerator[] = "generator", kTokenizer[] = "tokenizer";
constexpr int64_t kMostWindows = int64_t{1} << 53;
constexpr char kNoTokenizer[] = "none";  // as the state's kTokenizer

std::string join(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

void append(std::vector<io::NamedTensor>& to, std::string_view prefix,
            const std::vector<io::NamedTensor>& from) {
  for (const io::NamedTensor& each : from)
    to.push_back({std::string(prefix) + each.name, each.tensor});
}

at::Tensor bytes_tensor(const std::string& bytes) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(bytes.size())}, at::kByte);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

std::string newest(std::string_view kind) { return std::string(kind).append(kNewest); }

std::string bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// Whether the file is of that kind. Files of the newest format have checksums.
bool is_kind(const io::Safetensors& file, std::string_view kind, const std::string& path) {
  const auto found = file.metadata.find(kFormat);
  if (found == file.metadata.end() || !found->second.starts_with(kind)) return false;
  const std::string_view number = std::string_view(found->second).substr(kind.size());
  if (number == kNewest && !file.checked)
    throw InputError(unreadable(path, "damaged: its checksums are missing"));
  if (number != kNewest && number != kWithoutChecksums) {
    throw InputError(
        unreadable(path, "its format '" + found->second + "' is not known to this version"));
  }
  return true;
}

// Records in a state that the run has no tokenizer. Other states have no such field.
SortedJson with_tokenizer(SortedJson state, const Checkpoint& checkpoint) {
  if (checkpoint.without_tokenizer) state[kTokenizer] = kNoTokenizer;
  return state;
}

bool is_without_tokenizer(const SortedJson& state) {
  if (!state.contains(kTokenizer)) return false;
  require(state.at(kTokenizer) == kNoTokenizer,
          "the header's state is damaged: tokenizer is not known to this version");
  return true;
}

// Files of version 0.1 end with `tied`; later ones may be without what came after them. Texts that
// say the same in other words, as 007, are refused: no training writes them.
LanguageModelOptions model_options(const SortedJson& state) {
  const auto map = state.at("model").get<std::map<std::string, std::string>>();
  for (const LanguageOption& option : language_options()) {
    const std::string name(option.name);
    require(map.contains(name), "its option ", name, " is missing");
    if (name == "tied") break;
  }
  LanguageModelOptions options = language_model_options(map);
  const auto written = to_map(options);
  for (const auto& [name, text] : map) {
    require(text == written.at(name), "its option ", name, ": expected '", written.at(name),
            "', got '", text, "'");
  }
  return options;
}

// A part of a state, with the fields and the types of numbers that were written.
template <class Part>
Part part_of(const SortedJson& state, const char* name) {
  const SortedJson& given = state.at(name);
  Part part = given.get<Part>();
  require_same(given, part, std::string(kState) + "." + name);
  return part;
}

void require_fields(const SortedJson& state, std::initializer_list<std::string_view> known) {
  for (const auto& [name, value] : state.items()) {
    require(std::ranges::count(known, name) == 1, "the header's state has an unknown field ",
            quoted_name(name));
  }
}

void require_possible(const Progress& progress, int64_t steps) {
  require_within("the header's state.progress.step", 0, steps, progress.step);
  require_within("the header's state.progress.position", 0, kMostWindows, progress.position);
  require_within("the header's state.progress.loss_steps", 0, progress.step, progress.loss_steps);
}

// Rejects weights that do not fit the model, before the model is built. The header alone determines
// the model's size, and a header may state anything.
void require_fits(const LanguageModelOptions& o, const std::vector<io::NamedTensor>& weights,
                  const std::string& path) {
  constexpr std::string_view kBlocks = "blocks.";
  std::set<std::string_view> blocks;
  int64_t widest = 0;
  const at::Tensor* embedding = nullptr;
  for (const io::NamedTensor& each : weights) {
    const std::string_view name = each.name;
    if (name == "embedding.weight") embedding = &each.tensor;
    if (name.starts_with(kBlocks)) blocks.insert(name.substr(0, name.find('.', kBlocks.size())));
    for (const int64_t size : each.tensor.sizes()) widest = std::max(widest, size);
  }
  const auto require = [&](bool fits, const char* option) {
    nsimplex::require(fits, "cannot read ", path, ": its option ", option,
                      " does not belong to its weights");
  };
  const bool is_matrix = embedding && embedding->dim() == 2;
  require(is_matrix && embedding->size(0) == o.vocabulary, "vocabulary");
  require(is_matrix && embedding->size(1) == o.dim, "dim");
  require(std::ssize(blocks) == o.layers, "layers");
  const int64_t heads = o.head_dim > 0 ? widest : o.dim;
  require(o.heads >= 1 && o.heads <= heads && o.kv_heads >= 0 && o.kv_heads <= heads, "heads");
  require(o.head_dim <= widest, "head_dim");
  require(!(o.mlp_ratio * static_cast<double>(o.dim) > static_cast<double>(widest) + 1),
          "mlp_ratio");
}

Checkpoint to_checkpoint(io::Safetensors file, const std::string& path) {
  Checkpoint checkpoint = from_header(file, path, kState, [&](const SortedJson& state) {
    require_fields(state, {"model", "training", "text", "progress", kTokenizer});
    Checkpoint read{.model = model_options(state),
                    .training = part_of<TrainingOptions>(state, "training"),
                    .text = part_of<TextRecord>(state, "text"),
                    .progress = part_of<Progress>(state, "progress"),
                    .without_tokenizer = is_without_tokenizer(state)};
    check(read.training);
    require_possible(read.progress, read.training.steps);
    return read;
  });
  return of_file(path, [&] {
    checkpoint.generator = take_list(file.tensors, kGenerator, at::kByte).clone();
    if (file.find(kTokenizer) != nullptr) {
      checkpoint.tokenizer = bytes_of(take_list(file.tensors, kTokenizer, at::kByte));
    }
    checkpoint.weights = take_under(file.tensors, kWeights);
    require_fits(checkpoint.model, checkpoint.weights, path);
    checkpoint.optimizer = take_under(file.tensors, kOptimizer);
    require_all_taken(file.tensors);
    return std::move(checkpoint);
  });
}

}  // namespace

void write_checkpoint(const std::string& folder, const Checkpoint& checkpoint) {
  const SortedJson state = with_tokenizer({{"model", to_map(checkpoint.model)},
                                           {"training", checkpoint.training},
                                           {"text", checkpoint.text},
                                           {"progress", checkpoint.progress}},
                                          checkpoint);
  io::Safetensors file;
  file.metadata = {{kFormat, newest(kCheckpoint)}, {kState, state.dump()}};
  append(file.tensors, kWeights, checkpoint.weights);
  append(file.tensors, kOptimizer, checkpoint.optimizer);
  file.tensors.push_back({kGenerator, checkpoint.generator});
  if (!checkpoint.tokenizer.empty())
    file.tensors.push_back({kTokenizer, bytes_tensor(checkpoint.tokenizer)});
  io::write_safetensors(join(folder, kCheckpointFile), file);
  write_model(folder, checkpoint);
}

void write_model(const std::string& folder, const Checkpoint& checkpoint) {
  const SortedJson state = with_tokenizer(
      {{"model", to_map(checkpoint.model)}, {"step", checkpoint.progress.step}}, checkpoint);
  io::write_safetensors(join(folder, kModelFile),
                        {checkpoint.weights, {{kFormat, newest(kModel)}, {kState, state.dump()}}});
  if (!checkpoint.tokenizer.empty())
    io::write_text(join(folder, kTokenizerFile), checkpoint.tokenizer);
}

Checkpoint read_checkpoint(const std::string& path) {
  io::Safetensors file = io::read_safetensors(path);
  if (!is_kind(file, kCheckpoint, path))
    throw InputError(unreadable(path, "not a checkpoint of this program"));
  of_file(path, [&] { require_usable(file.tensors); });
  return to_checkpoint(std::move(file), path);
}

SavedModel read_model(const std::string& path) {
  std::string name = path;
  if (std::filesystem::is_directory(path)) {
    name = join(path, kCheckpointFile);
    if (const std::string alone = join(path, kModelFile);
        !std::filesystem::exists(name) && std::filesystem::exists(alone)) {
      name = alone;
    }
  }
  io::Safetensors file = io::read_safetensors(name);
  if (is_kind(file, kCheckpoint, name)) {
    Checkpoint checkpoint = to_checkpoint(std::move(file), name);
    return {checkpoint.model,     std::move(checkpoint.weights), checkpoint.progress.step,
            checkpoint.tokenizer, checkpoint.without_tokenizer,  checkpoint.text};
  }
  if (!is_kind(file, kModel, name))
    throw InputError(unreadable(name, "not a model of this program"));
  SavedModel model = from_header(file, name, kState, [](const SortedJson& state) {
    require_fields(state, {"model", "step", kTokenizer});
    SavedModel read{.options = model_options(state),
                    .step = part_of<int64_t>(state, "step"),
                    .without_tokenizer = is_without_tokenizer(state)};
    require(read.step >= 0, "the header's state.step: expected a number from 0 on, got ",
            read.step);
    return read;
  });
  model.weights = std::move(file.tensors);
  require_fits(model.options, model.weights, name);
  const auto tokenizer = std::filesystem::path(name).parent_path() / kTokenizerFile;
  if (std::filesystem::exists(tokenizer)) model.tokenizer = io::read_text(tokenizer);
  return model;
}

}  // namespace nsimplex::training
