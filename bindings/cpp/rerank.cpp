// Re-ranks the candidates of a query:  rerank MODEL < candidates
// A candidate is a line: its id, then its features, separated by spaces or tabs; NaN or nan is a missing one. The best
// comes first in the output.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "rankwood.hpp"

/* The nearest float: infinity when it is too large. */
float number(const std::string& word, const std::string& where) {
  char* end;
  const float value = std::strtof(word.c_str(), &end);
  if (end != word.c_str() + word.size()) throw std::invalid_argument(where + ": '" + word + "' is not a number");
  return value;
}

/* As many digits as it takes to read the same double again. */
std::string digits(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

int main(int argc, char** argv) try {
  if (argc != 2) throw std::invalid_argument("usage: rerank MODEL < candidates");
  const auto model = rankwood::Model::load(argv[1]);
  auto workspace = model.workspace();  // a server keeps one per thread

  std::vector<std::string> ids;
  std::vector<float> features;  // of all candidates, one behind the other: one call is faster than many
  for (std::string line, word; std::getline(std::cin, line);) {
    const auto where = "line " + std::to_string(ids.size() + 1);
    const auto before = features.size();
    std::istringstream words(line);
    if (!(words >> ids.emplace_back()))
      throw std::invalid_argument(where + " is empty: it must have an id and features");
    while (words >> word) features.push_back(number(word, where));
    if (const auto found = features.size() - before; found != model.n_features()) {
      throw std::invalid_argument(where + " has " + std::to_string(found) + " features, the model has " +
                                  std::to_string(model.n_features()));
    }
  }

  std::vector<double> scores(ids.size());
  model.score(features.data(), scores.size(), scores.data(), workspace);

  std::vector<std::size_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return scores[a] > scores[b]; });
  for (const auto place : order) std::cout << ids[place] << ' ' << digits(scores[place]) << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
