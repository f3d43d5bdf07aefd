import js from "@eslint/js";
import globals from "globals";

const rules = {
  "prefer-const": "error",
  "no-var": "error",
  eqeqeq: "error",
  "no-implicit-globals": "error",
  "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
};

export default [
  js.configs.recommended,
  { files: ["js/src/**/*.js"], languageOptions: { globals: globals.browser }, rules },
  {
    files: ["js/test/**/*.js", "js/*.mjs"],
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
    rules,
  },
];
