/** giro's own version, from the package it was built from. */
import packageJson from '../../package.json' with { type: 'json' };

/** Version of giro, such as `0.1.0`. */
export const giroVersion: string = packageJson.version;
