// Properties of the journal's text: random events of every type come back equal, and changed text
// is an error or another event, never a crash.
#include <gtest/gtest.h>

#include <boost/describe/enumerators.hpp>
#include <boost/describe/members.hpp>
#include <boost/mp11.hpp>

#include "base/random.hpp"
#include "domain/event_codec.hpp"
#include "domain/json_codec.hpp"

namespace loam {
namespace {

// Fills any described value with noise, by reflection: a new member cannot be forgotten.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : random_(seed) {}
  Random& random() { return random_; }

  void fill(bool& out) { out = random_.chance(500); }
  void fill(std::int64_t& out) { out = number(); }
  void fill(std::uint32_t& out) { out = static_cast<std::uint32_t>(random_.next()); }
  void fill(std::string& out) {
    static const std::vector<std::string> pieces{"a",
                                                 "z9",
                                                 "-",
                                                 " ",
                                                 "\"",
                                                 "\\",
                                                 "\n",
                                                 "\t",
                                                 std::string(1, '\0'),
                                                 "\x01",
                                                 "\x7f",
                                                 "\xc3\xa9",
                                                 "\xf0\x9f\x8c\xb1",
                                                 "{}",
                                                 "[",
                                                 "null",
                                                 "/",
                                                 "1e999"};
    out.clear();
    for (std::uint64_t n = random_.below(6); n > 0; --n)
      out += pieces[random_.below(pieces.size())];
  }
  void fill(Instant& out) { out.ms = random_.chance(100) ? Instant::never().ms : number(); }
  void fill(Duration& out) { out.ms = number(); }
  void fill(Epoch& out) { fill(out.value); }
  void fill(Currency& out) {
    std::string code;
    for (int i = 0; i < 3; ++i) code += static_cast<char>('A' + random_.below(26));
    out = Currency(code);
  }
  void fill(Money& out) {
    Currency currency;
    fill(currency);
    // Up to 10^15 whole units: what the text of money may hold.
    out = Money(static_cast<Int128>(random_.between(-999'999'999, 999'999'999)) *
                        static_cast<Int128>(random_.between(1, 1'000'000'000'000'000)) +
                    random_.between(-5, 5),
                currency);
  }
  template <class Unit>
  void fill(Quantity<Unit>& out) {
    out.value = number();
  }
  template <class Tag>
  void fill(Id<Tag>& out) {
    out.value = random_.next() >> (1 + random_.below(63));
  }
  template <class T>
  requires std::is_enum_v<T>
  void fill(T& out) {
    std::vector<T> values;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>(
        [&](auto member) { values.push_back(member.value); });
    out = values[random_.below(values.size())];
  }
  template <class T>
  void fill(std::shared_ptr<const T>& out) {
    auto fresh = std::make_shared<T>();
    fill(*fresh);
    out = std::move(fresh);
  }
  template <class T>
  void fill(std::optional<T>& out) {
    out.reset();
    if (random_.chance(500)) fill(out.emplace());
  }
  template <class T>
  void fill(std::vector<T>& out) {
    out.clear();
    for (std::uint64_t n = random_.below(4); n > 0; --n) fill(out.emplace_back());
  }
  template <class T>
  void fill(std::map<std::string, T>& out) {
    out.clear();
    for (std::uint64_t n = random_.below(4); n > 0; --n) {
      std::string key;
      fill(key);
      fill(out[key]);
    }
  }
  template <class T>
  requires(boost::describe::has_describe_members<T>::value &&
           !std::is_enum_v<T>) void fill(T& out) {
    boost::mp11::mp_for_each<boost::describe::describe_members<T, boost::describe::mod_public>>(
        [&](auto member) { fill(out.*member.pointer); });
  }

 private:
  std::int64_t number() {
    const auto bits = static_cast<std::int64_t>(random_.next());
    return random_.chance(200) ? bits : bits >> random_.below(64);
  }
  Random random_;
};

template <class Check>
void for_every_type(Noise& noise, const Check& check) {
  boost::mp11::mp_for_each<boost::mp11::mp_iota_c<std::variant_size_v<AnyEvent>>>([&](auto index) {
    std::variant_alternative_t<index.value, AnyEvent> typed{};
    noise.fill(typed);
    check(Event(typed));
  });
}

TEST(CodecPropertyTest, RandomEventsOfEveryTypeComeBackEqual) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Noise noise(seed);
    for_every_type(noise, [&](const Event& event) {
      const EncodedEvent encoded = encode(event);
      EXPECT_EQ(encoded.payload.find('\n'), std::string::npos) << encoded.payload;
      const auto decoded = decode(encoded);
      ASSERT_TRUE(decoded.ok()) << "seed " << seed << ": " << to_text(decoded.error()) << "\n"
                                << encoded.payload;
      EXPECT_EQ(decoded->index(), event.index());
      // Every member is in the text, so equal texts are equal events.
      EXPECT_EQ(encode(*decoded).payload, encoded.payload) << "seed " << seed;
    });
  }
}

TEST(CodecPropertyTest, TheTextIsThatOfTheDocument) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Noise noise(seed);
    for_every_type(noise, [&](const Event& event) {
      const std::string document =
          std::visit([](const auto& e) { return json::bj::serialize(json::write(e)); }, event);
      EXPECT_EQ(encode(event).payload, document) << "seed " << seed;
    });
  }
}

std::string mutated(std::string text, Random& random) {
  for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
    const std::size_t at = random.below(text.size() + 1);
    switch (random.below(5)) {
      case 0:
        text = text.substr(0, at);
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(random.next()));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random.next());
        break;
      case 3:
        if (at < text.size()) text.erase(at, 1 + random.below(8));
        break;
      default:
        text += text.substr(at);
        break;
    }
  }
  return text;
}

TEST(CodecPropertyTest, ChangedTextIsCorruptOrAnotherEvent) {
  std::uint64_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Noise noise(seed);
    for_every_type(noise, [&](const Event& event) {
      EncodedEvent encoded = encode(event);
      for (int i = 0; i < 4; ++i) {
        EncodedEvent changed = encoded;
        changed.payload = mutated(encoded.payload, noise.random());
        const auto decoded = decode(changed);
        if (decoded.ok()) {
          EXPECT_EQ(decoded->index(), event.index());
          continue;
        }
        ++refused;
        EXPECT_EQ(decoded.error().kind, ErrorKind::corrupt) << to_text(decoded.error()) << "\n"
                                                            << changed.payload;
      }
    });
  }
  EXPECT_GT(refused, 1000u);
}

TEST(CodecTest, AnUnknownTypeOrVersionIsOfANewerLoam) {
  for (const EncodedEvent& encoded :
       {EncodedEvent{"task_accepted", 99, "{}"}, EncodedEvent{"task_accepted", 0, "{}"},
        EncodedEvent{"", 1, "{}"}, EncodedEvent{"task_teleported", 1, "{}"}}) {
    const auto decoded = decode(encoded);
    ASSERT_FALSE(decoded.ok());
    EXPECT_EQ(decoded.error().kind, ErrorKind::unsupported);
  }
}

TEST(CodecTest, DeepNestingIsAnErrorNotACrash) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += open;
    const auto decoded = decode({"task_paused", 1, text});
    ASSERT_FALSE(decoded.ok());
    EXPECT_EQ(decoded.error().kind, ErrorKind::corrupt) << to_text(decoded.error());
  }
}

}  // namespace
}  // namespace loam
