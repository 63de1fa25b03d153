import { lookup as resolve } from 'node:dns/promises'
import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { type BlockList, isIP, type LookupFunction } from 'node:net'
import { pipeline, type Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { printable } from '@overlay/process'
import { isAllowedAddress } from '../domain/public-address.js'
import { FETCH_KEYS_MS, KEYS_BYTES } from '../limits.js'

/** From where keys of issuers may be fetched. */
export interface FetchRules {
  /** Not only https. */
  readonly isHttpAllowed: boolean
  /** Networks that are allowed besides the public internet. */
  readonly networks: BlockList | undefined
  /** All authorities that are trusted, PEM. Undefined: those of the process. */
  readonly authorities: readonly string[] | undefined
}

/** A document that could not be fetched. The message is for operators. */
export class FetchError extends Error {
  override readonly name = 'FetchError'
}

/**
 * Gets a text from an address that an administrator has set. Follows no redirect, uses no proxy and connects only to
 * addresses that the rules allow: those of the connection itself, however the name resolves.
 */
export function fetchDocument(
  endpoint: string,
  { isHttpAllowed, networks, authorities }: FetchRules,
  timeoutMs = FETCH_KEYS_MS,
): Promise<string> {
  if (!URL.canParse(endpoint)) return Promise.reject(new FetchError('the address cannot be read'))
  const url = new URL(endpoint)
  const isHttps = url.protocol === 'https:'
  if (!isHttps && !(isHttpAllowed && url.protocol === 'http:'))
    return Promise.reject(new FetchError('the address is not https, which the settings demand'))
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  if (isIP(host) !== 0 && !isAllowedAddress(host, networks)) return Promise.reject(notAllowed(host))

  return new Promise((fulfil, reject) => {
    const signal = AbortSignal.timeout(timeoutMs)
    const fail = (err: Error): void => {
      reject(signal.aborted ? new FetchError(`no answer within ${timeoutMs / 1000} s`) : err)
      request.destroy()
    }
    const request = (isHttps ? requestHttps : requestHttp)(url, {
      agent: false,
      signal,
      lookup: lookupWithin(networks),
      headers: { accept: 'application/json', 'accept-encoding': 'identity' },
      ...(authorities && { ca: [...authorities] }),
    })
    request.on('error', (cause) => fail(cause instanceof FetchError ? cause : failure(cause)))
    request.on('response', (response) => {
      const refusal = refusalOf(response)
      if (refusal !== undefined) return fail(new FetchError(refusal))
      readText(plainBody(response)).then(fulfil, fail)
    })
    request.end()
  })
}

/** Why the answer is no document. Undefined: it may be one. */
function refusalOf({ statusCode = 0, headers }: IncomingMessage): string | undefined {
  const { location } = headers
  if (statusCode >= 300 && statusCode < 400 && location !== undefined)
    return `the answer is a redirect (${statusCode}) to ${printable(location, 200)}, and redirects are not followed: set that address`
  if (statusCode !== 200) return `the answer has status ${statusCode}`
  const encoding = encodingOf(headers)
  return ['identity', 'gzip', 'x-gzip'].includes(encoding)
    ? undefined
    : `the answer is compressed as ${printable(encoding, 20)}; only gzip is read`
}

const encodingOf = (headers: IncomingHttpHeaders): string =>
  headers['content-encoding']?.trim().toLowerCase() || 'identity'

/** Some servers compress without being asked. */
const plainBody = (response: IncomingMessage): Readable =>
  encodingOf(response.headers) === 'identity' ? response : pipeline(response, createGunzip(), () => undefined) // the reader sees the error

/** The limit is one of what is decompressed. A byte order mark is left out. */
async function readText(body: Readable): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > KEYS_BYTES) throw new FetchError(`the answer is longer than ${KEYS_BYTES / 1024} KiB`)
      chunks.push(chunk)
    }
  } catch (err) {
    if (err instanceof FetchError) throw err
    throw new FetchError(`the answer cannot be read: ${err instanceof Error ? err.message : err}`, {
      cause: err,
    })
  }
  return new TextDecoder().decode(Buffer.concat(chunks))
}

const failure = (cause: Error): FetchError => new FetchError(`not reached: ${cause.message}`, { cause })

const notAllowed = (address: string): FetchError =>
  new FetchError(`${address} is not a public address, and the settings do not allow it`)

/** Resolves a name to addresses that are allowed; the connection is made to one of these. */
const lookupWithin =
  (networks: BlockList | undefined): LookupFunction =>
  (host, { family, hints, all }, done) => {
    const options = {
      all: true,
      ...(family !== undefined && { family }),
      ...(hints !== undefined && { hints }),
    }
    resolve(host, options as { readonly all: true }).then(
      (found) => {
        const usable = found.filter(({ address }) => isAllowedAddress(address, networks))
        const [first] = usable
        if (!first) done(notAllowed(found[0]?.address ?? host), '')
        else if (all) done(null, usable)
        else done(null, first.address, first.family)
      },
      (err: NodeJS.ErrnoException) => done(err, ''),
    )
  }
