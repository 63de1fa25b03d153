import { generateKeyPair, randomBytes } from 'node:crypto'
import { chmod, chown, mkdir, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openSerial, runPeriodically } from '@overlay/process/async'
import { type CertifiedKey, issueCa, issueServer, notAfterOf, notBeforeOf, openSigner } from '@overlay/x509'
import { CERTIFICATE_CHECK_MS, CERTIFICATE_HOURS, CERTIFICATE_RENEWAL_MS } from '../limits.js'
import type { Account } from '../system/account.js'
import { errorText } from '../system/error-text.js'
import { ignoreMissing } from '../system/files.js'

/** The certificates by which the processes of this machine trust each other, each in a directory of its own. */
export interface ProcessCertificates extends AsyncDisposable {
  /**
   * Issues a certificate and renews it from then on.
   * @returns a directory with `tls.crt`, `tls.key` and `ca.crt`, as Kubernetes mounts a secret: the files change together
   */
  issue(options: CertificateOptions): Promise<string>
  /** Renews what is due. A failure is reported and repeated with the next call. */
  renew(): Promise<void>
}

export interface CertificateOptions {
  /** Of the process, unique on this machine. */
  readonly name: string
  /** DNS names and IP addresses. The first is what the process may do: the name of a service, or `operator`. */
  readonly hosts: readonly [string, ...string[]]
  /** Reads the directory. Absent: only the user of the launcher does. */
  readonly account?: Account
  /** Runs after each renewal, for programs that do not read changed files. */
  readonly onRenewed?: () => void
}

export interface ProcessCertificatesOptions {
  /** Has a directory for each process. */
  readonly directory: string
  readonly warn: (line: string) => void
  readonly now?: () => Date
}

interface Issued extends CertificateOptions {
  readonly directory: string
  issuedAt: Date
}

/** Each start has an authority of its own, whose key is never stored: processes do not outlive their launcher. */
export async function openProcessCertificates({
  directory,
  warn,
  now = () => new Date(),
}: ProcessCertificatesOptions): Promise<ProcessCertificates> {
  const issued: Issued[] = []
  const serially = openSerial()
  let authority = await newAuthority(now())
  let reported: string | undefined

  const write = async (one: Issued): Promise<void> => {
    const at = now()
    const { name, hosts } = one
    const { pem, privateKey } = await issueServer(openSigner(authority), {
      privateKey: await newPrivateKey(),
      hosts,
      commonName: name,
      hours: CERTIFICATE_HOURS,
      now: at,
    })
    await replaceFiles(
      one.directory,
      { 'tls.crt': pem, 'tls.key': privateKey, 'ca.crt': authority.pem },
      one.account,
    )
    one.issuedAt = at
  }

  const renewAll = async (): Promise<void> => {
    const isReplaced = !isValid(authority, now()) // the clock was wrong at the start
    if (isReplaced) authority = await newAuthority(now())
    for (const one of issued) {
      const ageMs = now().getTime() - one.issuedAt.getTime()
      if (!isReplaced && ageMs >= 0 && ageMs < CERTIFICATE_RENEWAL_MS) continue
      await write(one)
      one.onRenewed?.()
    }
  }

  const renew = (): Promise<void> =>
    serially(renewAll).then(
      () => {
        reported = undefined
      },
      (err: unknown) => {
        const problem = errorText(err)
        if (problem !== reported) warn(`certificates between processes not renewed, trying again: ${problem}`)
        reported = problem
      },
    )

  const renewing = runPeriodically(CERTIFICATE_CHECK_MS, renew)
  return {
    issue: (options) =>
      serially(async () => {
        const one = { ...options, directory: join(directory, options.name), issuedAt: now() }
        await write(one)
        issued.push(one)
        return one.directory
      }),
    renew,
    [Symbol.asyncDispose]: () => renewing[Symbol.asyncDispose](),
  }
}

const isValid = ({ pem }: CertifiedKey, now: Date): boolean =>
  notBeforeOf(pem) <= now && now < notAfterOf(pem)

/** Valid for ten years. Names differ, so that TLS libraries select the issuer by name. */
const newAuthority = async (now: Date): Promise<CertifiedKey> =>
  issueCa({
    privateKey: await newPrivateKey(),
    commonName: `internal authority ${now.toISOString().replace(/\.\d+/, '')}`,
    now,
  })

const generate = promisify(generateKeyPair)

/** P-256, PKCS#8, PEM. */
async function newPrivateKey(): Promise<string> {
  const { privateKey } = await generate('ec', { namedCurve: 'P-256' })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}

/** The link to the present files, as in the volumes of Kubernetes. */
const DATA = '..data'

/**
 * Replaces all files of a directory at once: they are links through one link, which is renamed. The launcher owns the
 * files, and the group of the account reads them: root must not write to a directory of another account.
 */
async function replaceFiles(
  directory: string,
  files: Readonly<Record<string, string>>,
  { gid }: Account = {},
): Promise<void> {
  const [directoryMode, fileMode] = gid === undefined ? [0o700, 0o600] : [0o750, 0o640]
  const admit = async (path: string, mode: number): Promise<void> => {
    if (gid !== undefined) await chown(path, process.getuid?.() ?? 0, gid)
    await chmod(path, mode) // regardless of the umask
  }
  const isNew = (await mkdir(directory, { recursive: true, mode: 0o700 })) !== undefined
  if (isNew) await admit(directory, directoryMode)
  const previous = await readlink(join(directory, DATA)).catch(ignoreMissing)

  const generation = `${GENERATION}${randomBytes(8).toString('hex')}`
  const path = join(directory, generation)
  await mkdir(path, { mode: 0o700 })
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(path, name), content, { mode: 0o600, flag: 'wx' })
    await admit(join(path, name), fileMode)
  }
  await admit(path, directoryMode)
  const link = join(directory, `${DATA}_new`)
  await rm(link, { force: true })
  await symlink(generation, link)
  await rename(link, join(directory, DATA))
  if (isNew) for (const name of Object.keys(files)) await symlink(join(DATA, name), join(directory, name))
  for (const name of await readdir(directory)) {
    const isInUse = name === generation || name === previous // a process may be reading the previous files
    if (name.startsWith(GENERATION) && !isInUse) await rm(join(directory, name), { recursive: true })
  }
}

const GENERATION = '..at_'
