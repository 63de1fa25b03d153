/** Of an encoded structure. Above a certificate with the longest keys and many names. */
export const DER_BYTES = 32_768

/** Structures in structures. A certificate has about ten. */
export const DER_DEPTH = 32

/** Of an RSA key. */
export const LEAST_RSA_BITS = 2048

/** In bits of RSA, for keys that clients and routers present: bounds the time of their checks. */
export const LONGEST_KEY = 8192

/** The same for authorities that an administrator or operator has added. Not below `LONGEST_KEY`. */
export const LONGEST_AUTHORITY_KEY = 16_384

/** Of an RSA key. */
export const LEAST_EXPONENT = 65_537n

/** Of its exponent: bounds the time of a verification. */
export const EXPONENT_BITS = 64

/** Rounds that look for factors close to each other. */
export const FERMAT_ROUNDS = 100

/** Of a host name, with the dot at the end. */
export const HOST_CHARACTERS = 254

/** Of a token: some providers list hundreds of groups. */
export const MAX_TOKEN_CHARACTERS = 65_536

/** Of a text in a token that is stored. */
export const TOKEN_TEXT_CHARACTERS = 1000
