import assert from "node:assert/strict";
import { test } from "node:test";
import {
  formatBytes,
  formatCount,
  formatMetric,
  formatShape,
  formatTime,
  groupDigits,
  metricLabel,
  significant,
} from "../src/format.js";

test("counts and bytes have three significant digits and a unit", () => {
  assert.deepEqual([0, 12, 999, 590592, 999600, 38597376, 7e10].map(formatCount), [
    "0",
    "12",
    "999",
    "591 k",
    "1 M",
    "38.6 M",
    "70 G",
  ]);
  assert.deepEqual([12, 393216, 1.5e9].map(formatBytes), ["12 B", "393 kB", "1.5 GB"]);
});

test("shapes are written with crosses", () => {
  assert.deepEqual([[1, 128, 768], [], null, [0]].map(formatShape), ["1×128×768", "scalar", "?", "0"]);
});

test("metrics carry the unit that their name tells", () => {
  assert.equal(formatMetric("size_bytes", 2048), "2.05 kB");
  assert.equal(formatMetric("time_ms", 2.2), "2.2 ms");
  assert.equal(formatMetric("flops", 151e6), "151 MFLOPs");
  assert.equal(formatMetric("flops", 7), "7 FLOPs");
  assert.equal(formatMetric("parameters", 590592), "590,592 params");
  assert.equal(formatMetric("anything", 0.123456), "0.123");
  assert.equal(metricLabel("peak_size_bytes"), "peak size");
});

test("times change their unit", () => {
  assert.deepEqual([0, 0.0123, 2.2, 1500].map(formatTime), ["0 ms", "12.3 µs", "2.2 ms", "1.5 s"]);
});

test("small, large, negative and missing numbers", () => {
  assert.deepEqual([-1.5, 1e-9, 1e12, NaN].map(significant), ["−1.5", "1.00e−9", "1.00e+12", "NaN"]);
  assert.equal(groupDigits(1234567), "1,234,567");
});
