/** A day, for the times below. */
export const DAY_MS = 86_400_000

/** A next authority is published for so long before it is activated automatically. Longer than gateways and routers take to learn it. */
export const AUTHORITY_PUBLISHED_MS = DAY_MS

/** A key is published for so long before the operator may activate it: verifiers follow the keys, or poll them. */
export const OPERATOR_PUBLISHED_MS = 60_000

/** How long others may keep the published keys of tokens. The next key is published at least as long before it signs. */
export const KEYS_CACHED_MS = 3_600_000

/** The longest life of the token of a session for a service. */
export const SESSION_TOKEN_MS = 90 * DAY_MS

/** A retired key of tokens stays longer than its tokens: replicas learn of its retirement late, and clocks differ. */
export const TOKEN_KEY_EXTRA_MS = 3_600_000

/** A key that expires so soon concerns the operator. The alert about certificates uses the same time. */
export const EXPIRY_CONCERN_MS = 30 * DAY_MS

/** A replacement is overdue after this time. Longer than `AUTHORITY_PUBLISHED_MS` and some checks. */
export const REPLACEMENT_LATE_MS = 2 * DAY_MS

/** The longest life of a leaf: a year. Decides how long a retired authority is needed. */
export const LEAF_MS = 366 * DAY_MS

/** A key is kept so much longer than needed: clocks differ. */
export const KEY_EXTRA_MS = DAY_MS

/** An authority that ends sooner issues no other certificates of the network's own. */
export const ISSUER_MS = 2 * DAY_MS

/** Between checks whether a key is due. Far below all times of replacements. */
export const KEY_CHECK_MS = 3_600_000

/** Between warnings about the same key. */
export const KEY_WARNING_MS = DAY_MS

/** Steps of one check. More are a defect of the plan. */
export const MAX_KEY_STEPS = 100

/** A read of keys waits so long for changes that its caller has seen. Below the limit of a call (10 s). */
export const KEYS_REACH_MS = 2000

/** Between checks of the operator's key files. Not below `OPERATOR_PUBLISHED_MS`, after which a new key is activated. */
export const PROVIDED_KEY_CHECK_MS = 60_000

/** Of a file of the operator's key. */
export const KEY_FILE_BYTES = 256 * 1024

/** Of an encrypted key in PEM. OpenSSL takes a quarter of a second for so many. */
export const PEM_ITERATIONS = 1_000_000

/** Of PKCS#12: forge takes a second for each derivation with so many. keytool of Java 9 to 16 uses this number, others less. */
export const PKCS12_ITERATIONS = 100_000

/** Certificates from a leaf to its root, both included. */
export const MAX_PATH = 8

/** Of a certificate request in PEM. Below the limit of a body. */
export const CSR_CHARACTERS = 16_384

/** An enrollment is reserved so long for one request. Longer than the limit of a call (10 s). */
export const CLAIM_SECONDS = 15

/** Life of a certificate that stands for one API session. */
export const SESSION_CERTIFICATE_HOURS = 12

/** Challenges that wait to be signed, one at a time. Strangers send them: they must not fill the queue of enrollments. */
export const CHALLENGES_WAITING = 100

/** Tokens of one call: an access, a refresh and an id token, and room. */
export const MAX_TOKENS = 8

/** Claims of one token. Callers are services: a larger one is a defect. */
export const CLAIMS_BYTES = 65_536

/** A token may expire so much later than by the clock of this process. Below `TOKEN_KEY_EXTRA_MS`. */
export const CLOCK_SKEW_MS = 60_000

/** Signed enrollment tokens in memory, about 10 MB. */
export const JWTS_CACHED = 10_000

/** Of the four threads of the pool, which also verify and hash. */
export const JWTS_SIGNED_AT_ONCE = 2

/** Enrollment tokens that wait for a signature: twenty pages of 500. */
export const JWTS_WAITING = 10_000

/** A router enrolls again after this time while a replica of the former release cannot check its names. */
export const UPGRADE_SECONDS = 30
