// Search results: guides come before background and generated pages, which contain nearly every word.
"use strict";

const PENALTIES = [
  [/^(changelog|formulas|notation)$/, 8],
  [/^(derivation|reproduction|calibration|scaling|tuning|reliability)$/, 6],
  [/^(generated|gallery)\//, 3],
];

var Scorer = {
  score: ([docname, , , , score, , kind]) =>
    score - (kind === "object" ? 0 : (PENALTIES.find(([pages]) => pages.test(docname)) ?? [null, 0])[1]),
  // The values of Sphinx
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
