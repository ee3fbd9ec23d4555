-- Shared by every program that decides by a clock: included where a program says `@include prelude-v1`.
-- Quotients of integers are taken as (a - a % b) / b, which the interpreter does without a call; for
-- a below 2^53 both are exact.
local find, format, match, sub = string.find, string.format, string.match, string.sub
local time = redis.call('TIME')
local millis = time[2] / 1000
local server_now = time[1] * 1000 + (millis - millis % 1)
