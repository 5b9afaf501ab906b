// A lexer feeds a parser through a coroutine: the lexer is an ordinary loop, the parser an ordinary recursion.
#include <cctype>
#include <cstdio>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "pirn/coro/coroutine.hpp"

struct token {
  char kind;  // '0' for a number, '.' at the end, else the operator itself
  int value;
};
using lexer = pirn::coroutine<token()>;

token lex(lexer::yield& yield, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::isdigit(text[i]) != 0) {
      int value = text[i] - '0';
      for (; i + 1 < text.size() && std::isdigit(text[i + 1]) != 0; ++i) {
        value = value * 10 + (text[i + 1] - '0');
      }
      yield({'0', value});
    } else if (text[i] != ' ') {
      yield({text[i], 0});
    }
  }
  return {'.', 0};
}

struct parser {
  lexer tokens;
  token next = tokens.resume();
  token take() { return std::exchange(next, tokens.done() ? token{'.', 0} : tokens.resume()); }
  int sum() {
    int value = product();
    while (next.kind == '+' || next.kind == '-') {
      value += take().kind == '+' ? product() : -product();
    }
    return value;
  }
  int product() {
    const token first = take();
    if (first.kind != '0') {
      throw std::runtime_error("a number was expected");  // the exception also unwinds the suspended lexer
    }
    return next.kind == '*' ? (take(), first.value * product()) : first.value;
  }
};

int main() {
  for (const char* text : {"1 + 20 * 3", "2 * 3 - 4 * 5 * 6 + 7", "2 * + 3"}) {
    try {
      std::printf("%s = %d\n", text, parser{lexer([&](auto& yield) { return lex(yield, text); })}.sum());
    } catch (const std::runtime_error& error) {
      std::printf("%s: %s\n", text, error.what());
    }
  }
}
