import { randomBytes } from 'node:crypto'
import { chmod, chown, mkdir, readdir, readlink, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openSerial, runPeriodically } from '@overlay/process/async'
import { type CertifiedKey, issueProcess, openSigner } from '@overlay/x509'
import type { Account } from '../system/account.js'
import { errorText } from '../system/error-text.js'
import { ignoreMissing } from '../system/files.js'
import type { Home } from './home.js'
import { secretsFile } from './home-files.js'
import { newPrivateKey, renewedAuthorities, signingAuthority } from './internal-authorities.js'
import type { RunDirectory } from './run-directory.js'

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
  readonly home: Pick<Home, 'secrets' | 'write'> & { readonly run: Pick<RunDirectory, 'tls'> }
  readonly warn: (line: string) => void
  readonly now?: () => Date
}

const DAY_MS = 86_400_000
const CHECK_MS = 60_000
const LIFE_HOURS = 7 * 24

interface Issued extends CertificateOptions {
  readonly directory: string
  issuedAt: Date
}

export async function openProcessCertificates({
  home,
  warn,
  now = () => new Date(),
}: ProcessCertificatesOptions): Promise<ProcessCertificates> {
  const issued: Issued[] = []
  const serially = openSerial()
  let authorities = home.secrets.internalAuthorities
  let reported: string | undefined

  const renewAuthorities = async (): Promise<boolean> => {
    const due = await renewedAuthorities(authorities, now())
    if (due === authorities) return false
    const secrets = { ...home.secrets, internalAuthorities: due }
    await home.write(secretsFile, `${JSON.stringify(secrets, null, 2)}\n`)
    authorities = due
    return true
  }

  const write = async (one: Issued): Promise<void> => {
    const at = now()
    const { name, hosts } = one
    const { pem, privateKey } = await issueProcess(openSigner(signingAuthority(authorities, at)), {
      privateKey: await newPrivateKey(),
      hosts,
      commonName: name,
      hours: LIFE_HOURS,
      now: at,
    })
    const files = { 'tls.crt': pem, 'tls.key': privateKey, 'ca.crt': bundleOf(authorities) }
    await replaceFiles(one.directory, files, one.account)
    one.issuedAt = at
  }

  const renewAll = async (): Promise<void> => {
    const areChanged = await renewAuthorities()
    for (const one of issued) {
      const ageMs = now().getTime() - one.issuedAt.getTime()
      if (!areChanged && ageMs >= 0 && ageMs < DAY_MS) continue
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

  await renewAuthorities()
  const renewing = runPeriodically(CHECK_MS, renew)
  return {
    issue: (options) =>
      serially(async () => {
        const one = { ...options, directory: join(home.run.tls, options.name), issuedAt: now() }
        await write(one)
        issued.push(one)
        return one.directory
      }),
    renew,
    [Symbol.asyncDispose]: () => renewing[Symbol.asyncDispose](),
  }
}

const bundleOf = (authorities: readonly CertifiedKey[]): string => authorities.map(({ pem }) => pem).join('')

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
