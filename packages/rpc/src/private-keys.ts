/** From its first line to its last one, or to the end of the text if that is missing. */
const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}-----|$)/g

/** The text without private keys in PEM that somebody has pasted into it. */
export const withoutPrivateKeys = (text: string): string =>
  text.includes('PRIVATE KEY-----') ? text.replace(PRIVATE_KEY, '[private key]') : text

/** For `JSON.stringify`. */
export const replacePrivateKeys = (_name: string, value: unknown): unknown =>
  typeof value === 'string' ? withoutPrivateKeys(value) : value
