// Sizes of requests and answers.

/** wire: rows of a page without `limit`. */
export const DEFAULT_LIMIT = 10

/** wire: rows of a page at most. */
export const MAX_LIMIT = 500

/** Rows that a page may skip. */
export const MAX_OFFSET = 100_000

/** Nested parentheses and changes between `and` and `or` in a filter. The parser is recursive. */
export const FILTER_DEPTH = 200

/** Keys of the tags of an entity. */
export const TAG_KEYS = 256

/** Characters of such a key. */
export const TAG_KEY_CHARACTERS = 256

/** Of the tags of an entity. Hundreds of rows with so many must fit one answer. */
export const TAGS_BYTES = 16 * 1024

/** wire: edge routers that a client gets. */
export const CLIENT_ROUTERS = 25
