package main

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode"
)

// texts is how Go writes and reads durations, quoted strings, dates and space.
type texts struct {
	// Nanoseconds (as text) and how they are written.
	Durations [][2]string
	// Texts, and the nanoseconds or, after "error: ", the error.
	ParsedDurations [][2]string
	// Code points (one each) and their strconv.Quote.
	Quoted [][2]string
	// Dates in UnixDate form, and the time in RFC 3339 or "" when they are refused.
	ParsedDates [][2]string
	// Pairs and their encoding/json.
	Headers [][2]json.RawMessage
	// Every code point that unicode.IsSpace knows.
	Space []rune
}

var durations = []time.Duration{
	0, 1, 999, 1000, 1500, 999999, 1000000, 1234567, 999999999, 1000000000, 1000000001, 1500000000, 59999999999, 60000000000,
	61000000000, 90000000000, 3599999999999, 3600000000000, 3661000000000, 100 * time.Hour, -90 * time.Second, -1, 36 * time.Hour,
	1<<63 - 1, -1 << 63, 3600000000001, 86400 * time.Second,
}

var durationTexts = []string{
	"0", "+0", "-0", "0s", "1h", "1h30m", "1h0m0s", "-1.5s", "+5s", ".5s", "1.s", "1.5h", "300ms", "1us", "1µs", "1μs", "1ns", "0.9ns", "1.234567891s",
	"0.3333333333333333333h", "9223372036854775807ns", "9223372036854775808ns", "-9223372036854775808ns", "9223372036854775.807us", "2562047h47m16.854775807s",
	"2562047h47m16.854775808s", "100000000000000000000ns", "0.100000000000000000000h", "0.830103483285477580700h", "00000000000000000000001s", "", "3", "-", "s", ".", "-.", ".s", "+.s", "1x", "1 h", " 1h", "1h ",
	"1d", "1h-30m", "--1h", "1e3s", "é", "3000000h", "1\"s", "1\\s", "1h\n", "1hh", "1.2.3s",
}

var quotedPoints = []rune{
	0, 1, 7, 8, 9, 10, 11, 12, 13, 27, 31, ' ', '"', '\'', '\\', '`', 'a', '~', 0x7f, 0x80, 0x85, 0xa0, 0xad, 'é', 0x300, 0x378, 0x600, 0x61c, 0x1680, 0x2000, 0x200b, 0x200d, 0x2028,
	0x2029, 0x202f, 0x205f, 0x3000, '日', 0xe000, 0xfe0f, 0xfeff, 0xfffd, 0xfffe, 0x1f600, 0x1d173, 0xe0001, 0xe0100, 0xf0000, 0x10ffff, '€', '½', '²', '$', '+',
}

var dateTexts = []string{
	"Tue Jan  2 03:04:05 UTC 2024", "Tue Jan 2 03:04:05 UTC 2024", "Tue Jan 02 03:04:05 UTC 2024", "Fri Jan  2 03:04:05 UTC 2024", "tue jan  2 03:04:05 UTC 2024",
	"Tue Jan  2 3:04:05 UTC 2024", "Tue Jan  2 03:4:05 UTC 2024", "Tue Jan  2 24:00:00 UTC 2024", "Tue Jan  2 23:60:00 UTC 2024", "Tue Jan  2 23:59:60 UTC 2024",
	"Thu Feb 29 00:00:00 UTC 2024", "Wed Feb 29 00:00:00 UTC 2023", "Tue Jan  0 00:00:00 UTC 2024", "Tue Jan 32 00:00:00 UTC 2024", "Mon Jan  1 00:00:00 UTC 0001",
	"Thu Jan  1 00:00:00 UTC 1970", "Wed Dec 31 23:59:59 UTC 1969", "Fri Dec 31 23:59:59 UTC 9999", "Tue Jan  2 03:04:05 UTC 24", "Tue Jan  2 03:04:05 UTC 12024",
	"Tue Jan  2 03:04:05 EST 2024", "Tue Jan  2 03:04:05 GMT 2024", "Tue Jan  2 03:04:05 GMT+2 2024", "Tue Jan  2 03:04:05 GMT-11 2024", "Tue Jan  2 03:04:05 GMT+24 2024", "Tue Jan  2 03:04:05 GMT+5:30 2024",
	"Tue Jan  2 03:04:05 -03 2024", "Tue Jan  2 03:04:05 +24 2024", "Tue Jan  2 03:04:05 CEST 2024", "Tue Jan  2 03:04:05 ABCD 2024", "Tue Jan  2 03:04:05 WITA 2024", "Tue Jan  2 03:04:05 ChST 2024",
	"Tue Jan  2 03:04:05 AB 2024", "Tue Jan  2 03:04:05 utc 2024", "Tue Jan  2 03:04:05.678 UTC 2024", "Tue  Jan   2  03:04:05  UTC  2024", "Tue Jan  2 03:04:05 UTC 2024 ", "", "Tuesday Jan  2 03:04:05 UTC 2024",
}

var headerPairs = [][2]string{
	{"k", "v"}, {"", ""}, {"k<", "v\"&"}, {">", "\\"}, {"é", "😀"}, {"\x00\x01\x1f\x7f", "\b\f\n\r\t\v"}, {"\u2028", "\u2029"}, {"/", "'"},
}

func makeTexts() (made texts) {
	for _, duration := range durations {
		made.Durations = append(made.Durations, [2]string{strconv.FormatInt(int64(duration), 10), duration.String()})
	}
	for _, text := range durationTexts {
		duration, err := time.ParseDuration(text)
		result := strconv.FormatInt(int64(duration), 10)
		if err != nil {
			result = "error: " + err.Error()
		}
		made.ParsedDurations = append(made.ParsedDurations, [2]string{text, result})
	}
	for _, point := range quotedPoints {
		made.Quoted = append(made.Quoted, [2]string{string(point), strconv.Quote(string(point))})
	}
	for _, text := range dateTexts {
		result := ""
		if date, err := time.Parse(time.UnixDate, text); err == nil {
			result = date.UTC().Format(time.RFC3339)
		}
		made.ParsedDates = append(made.ParsedDates, [2]string{text, result})
	}
	for _, pair := range headerPairs {
		encoded, err := json.Marshal(pair)
		check(err)
		made.Headers = append(made.Headers, [2]json.RawMessage{encoded, mustQuote(string(encoded))})
	}
	for point := rune(0); point <= unicode.MaxRune; point++ {
		if unicode.IsSpace(point) {
			made.Space = append(made.Space, point)
		}
	}
	return made
}

func mustQuote(text string) json.RawMessage {
	encoded, err := json.Marshal(text)
	check(err)
	return encoded
}
