/** The version in package.json, which a bundled application does not have. */
export const packageVersion = '0.2.0';
