import type { Limits } from '@overlay/store/guesses'
import sql from 'sql-template-tag'

// Times and sizes of identity. Settings are in settings.ts.

// Logins

/** Certificates of a chain, both ends included. No policy needs a longer one. */
export const CHAIN_CERTIFICATES = 8

/** Signatures that are verified for one login, each with the key of an authority that is trusted already. */
export const CHAIN_SIGNATURES = 16

/** wire: bearer tokens of a request that are tried; further ones are ignored. */
export const BEARER_TOKENS = 2

/** Gateways accept the token of a second factor for so long at most, also one that does not expire. */
export const SECOND_TOKEN_MS = 24 * 3_600_000

/** Age of the authorities of the network at which they are read again, if pki has announced no change. */
export const AUTHORITIES_MS = 10_000

/** A certificate that leads to no authority is checked again unless they are younger. Below `AUTHORITIES_MS`. */
export const AUTHORITY_FRESH_MS = 1000

/** Of a presented certificate. Those of authorities with many name constraints have 8 KiB. */
export const CERTIFICATE_BYTES = 16_384

/** Logins of a process that wait for their chain to be built. */
export const CHAINS_WAITING = 250

/**
 * Chains of one source per `CHAIN_PERIOD_MS` that lead nowhere although a signature was verified; further ones are
 * refused before they are built. A client of an external authority fails at each login with the authorities of the
 * network, but verifies no signature.
 */
export const CHAIN_FAILURES = 20

/** Whole seconds: also the time after which a refused source may retry. */
export const CHAIN_PERIOD_MS = 1000

/**
 * Passwords: 1,450 guesses a day from one source, and as many from all unfamiliar ones. Codes, for an attacker with
 * the password: 24 attempts a day guess one of a million codes with a chance of 0.01 %. Tokens cannot be guessed: their
 * limit only slows clients that repeat a bad one.
 */
export const guessLimits: Readonly<Record<'password' | 'code' | 'token', Limits>> = {
  password: {
    'account-at-source': { burst: 10, everySeconds: 60 },
    account: { burst: 100, everySeconds: 60 },
    source: { burst: 200, everySeconds: 15 },
  },
  code: {
    'account-at-source': { burst: 10, everySeconds: 5 * 60 },
    account: { burst: 30, everySeconds: 60 * 60 },
    source: { burst: 100, everySeconds: 60 },
  },
  token: { source: { burst: 300, everySeconds: 1 } },
}

// Sessions

/** Between searches for API sessions that must end. */
export const REAP_EVERY_MS = 5000

/** API sessions that end in one transaction. */
export const REAPED_SESSIONS = 500

/** Of this transaction. */
export const REAP_MS = 30_000

/** An idle API session ends so much later than configured. Longer than gateways take to report its use. */
export const IDLE_EXTRA_MS = 60_000

/** Changes of credentials that one statement moves to the change log. */
export const LOGGED_CREDENTIALS = 500

/**
 * Certificates of an API session that routers get, the newest ones. Clients may request any number, and messages
 * are limited.
 */
export const SESSION_FINGERPRINTS = 50

/** Credentials of this time share a statement. Each login waits for it. */
export const GATHER_CREDENTIALS_MS = 3

/** After a commit whose credentials no request waits for. */
export const SWEEP_SOON_MS = 250

/** Between sweeps of credentials that a crashed replica has left, or whose commit was not announced. */
export const SWEEP_EVERY_MS = 1000

/** Successive sweeps that are skipped while no router is connected. */
export const SKIPPED_SWEEPS = 4

/** A request waits so long until routers have its credentials. */
export const PUSH_MS = 1000

/** A replica of sessions without a report for so long has no routers. It reports each second. */
export const RECEIVER_SILENCE_MS = 3000

// OpenID Connect

/** Time to finish a login, and then to redeem its code. */
export const LOGIN_SECONDS = 600

/** Unfinished logins of one network. Beyond it, a new one replaces the oldest. */
export const LOGINS_OF_SOURCE = 1000

/** Of all networks. Beyond it, each keeps an equal share. */
export const UNFINISHED_LOGINS = 50_000

/** Between removals of expired logins and of those beyond `UNFINISHED_LOGINS`. */
export const REMOVE_LOGINS_EVERY_MS = 10_000

/**
 * Clients repeat a refresh whose answer was lost, or refresh twice at once. A refresh token that is used later than
 * this after its replacement was stolen.
 */
export const REUSE_SECONDS = 60

/** Age of the keys of tokens at which they are read again, if pki has announced no change. */
export const TOKEN_KEYS_MS = 60_000

/** Of this read. */
export const READ_TOKEN_KEYS_MS = 5000

/** Access tokens of one API session. A client has one connection to each router. */
export const ACCESS_TOKENS = 16

/** A certificate that ends within that time may end before an access token that is issued now. */
export const SOON_MS = 24 * 3600_000

/** Certificates that an access token is bound to. It is part of a header of each request. */
export const TOKEN_FINGERPRINTS = 20

/** An expired access token that no router reports stays so long. Longer than `TOKEN_IN_USE`. */
export const TOKEN_UNUSED = sql`interval '1 hour'`

/** Access tokens that one statement removes. */
export const REMOVED_TOKENS = 5000

/** Between writes of the use of an access token. Routers report it each minute. */
export const SEEN_EVERY = sql`interval '10 minutes'`

/** An access token whose use was written within this time is removed last. Longer than `SEEN_EVERY`. */
export const TOKEN_IN_USE = sql`interval '15 minutes'`

/** Refresh tokens of one API session. Beyond it, a new one replaces the oldest. */
export const REFRESH_TOKENS = 100

/** Between removals of expired tokens. */
export const REMOVE_TOKENS_EVERY_MS = 60_000

// External tokens

/** From this age of the keys on, the next use causes a fetch and does not wait for it. */
export const KEYS_AGING_MS = 5 * 60_000

/** From this age on, a use waits for a fetch. Longer than `KEYS_AGING_MS`. */
export const KEYS_OLD_MS = 15 * 60_000

/** From this age on, keys verify nothing: the issuer has been unavailable too long. */
export const KEYS_LOST_MS = 24 * 3_600_000

/** After a failed fetch, or one without the key; doubles up to a minute. */
export const FETCH_PAUSE_MS = 1000

/**
 * The longest pause after fetches without the key. Clients can name any key: they cause at most one fetch in this
 * time, and a new key is found as soon.
 */
export const MISSED_PAUSE_MS = 8000

/** Of a fetch of keys, from the look-up of its name to the last byte. */
export const FETCH_KEYS_MS = 5000

/** A replica has the right to fetch for so long. Longer than a fetch and the write of its result. */
export const FETCH_LEASE_MS = FETCH_KEYS_MS + 2000

/** Between reads of whether the fetch of another replica has ended. */
export const POLL_FETCH_MS = 50

/** Of a document with keys, after decompression. */
export const KEYS_BYTES = 256 * 1024

/** Keys of one signer. */
export const PUBLISHED_KEYS = 100

/** Characters of the name of a key in the log. */
export const LOGGED_KID = 128

// Identities

/** An expected enrollment stays so long without pki having it. Longer than a request takes until the commit of pki. */
export const ENROLLMENT_CREATED = sql`interval '10 minutes'`

/** Followers get the enrollment that an identity was created with for so long: the longest lifetime of enrollments. */
export const ENROLLMENT_PROMISED = sql`interval '365 days'`

/** Of a name that an authority gives to an identity. Longer ones exceed an entry of an index. */
export const NAME_CHARACTERS = 1000

/** The same, of an external id in a certificate. */
export const EXTERNAL_ID_CHARACTERS = 1000

/** Of the insert of an identity that is named by an authority. The last one appends the id. */
export const NAMING_TRIES = 3

/** Numbers that are appended to a name that is in use, before the id is. */
export const TAKEN_NAMES = 9

/** A router keeps a name reserved for so long. Longer than a write of a router may take. */
export const NAME_RESERVED = sql`interval '30 seconds'`

/** Between removals of reservations that have lapsed. */
export const END_NAMES_EVERY_MS = 15_000

/** Rows that a refusal names. */
export const NAMED_REFERENCES = 10
