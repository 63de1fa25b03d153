import { generateKeyPair } from 'node:crypto'
import { promisify } from 'node:util'
import { type CertifiedKey, issueInternalAuthority, notAfterOf, notBeforeOf } from '@overlay/x509'

/** The time in which all processes read a new authority before it signs. */
const PUBLISHED_MS = 86_400_000

/**
 * The authorities to trust at a time, newest first. A new one precedes the others when the newest has passed two thirds
 * of its life. Expired ones, and those of a clock that was ahead, are left out.
 * @returns `stored` itself if nothing is due
 */
export async function renewedAuthorities(
  stored: readonly CertifiedKey[],
  now: Date,
): Promise<readonly CertifiedKey[]> {
  const valid = stored.filter(({ pem }) => notBeforeOf(pem) <= now && now < notAfterOf(pem))
  const [newest] = valid
  if (newest === undefined || isPastTwoThirds(newest, now)) return [await newAuthority(now), ...valid]
  return valid.length === stored.length ? stored : valid
}

/** The newest authority that was published long enough, or the only one. */
export function signingAuthority(authorities: readonly CertifiedKey[], now: Date): CertifiedKey {
  const published = authorities.find(({ pem }) => now.getTime() - notBeforeOf(pem).getTime() >= PUBLISHED_MS)
  const authority = published ?? authorities.at(-1)
  if (authority === undefined) throw new Error('no authority for the certificates of processes')
  return authority
}

const isPastTwoThirds = ({ pem }: CertifiedKey, now: Date): boolean => {
  const [from, to] = [notBeforeOf(pem).getTime(), notAfterOf(pem).getTime()]
  return now.getTime() >= from + ((to - from) * 2) / 3
}

/** Names differ, so that TLS libraries select the issuer by name. */
const newAuthority = async (now: Date): Promise<CertifiedKey> =>
  issueInternalAuthority({
    privateKey: await newPrivateKey(),
    commonName: `internal authority ${now.toISOString().replace(/\.\d+/, '')}`,
    now,
  })

const generate = promisify(generateKeyPair)

/** P-256, PKCS#8, PEM. */
export async function newPrivateKey(): Promise<string> {
  const { privateKey } = await generate('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}
