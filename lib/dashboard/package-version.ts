/** That of package.json, which a bundled application does not have beside it. */
export const packageVersion = '0.1.0';
