import { constants, type FileHandle, open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { snapshotOf } from '@overlay/rpc/pem-files'
import { KEY_FILE_BYTES } from '../limits.js'

/** A provided key cannot be used. The message is one line: where, what is wrong, what to do. */
export class ProvidedKeyError extends Error {
  override readonly name = 'ProvidedKeyError'

  constructor(where: string, problem: string, remedy: string) {
    super(`${where}: ${problem}: ${remedy}`)
  }
}

/** Where an operator's key is. */
export interface KeySource {
  /** A directory, or a file. */
  readonly path: string
  readonly passphraseFile: string | undefined
  /** The settings or options that name the two, for messages. */
  readonly names: { readonly path: string; readonly passphraseFile: string }
}

/** A file and how messages name it. */
export interface KeyFile {
  readonly where: string
  readonly bytes: Buffer
}

/** The files of a key, not decoded. */
export interface KeyFiles {
  /** Has the key. */
  readonly key: KeyFile
  /** Has certificates. Absent: the file of the key has them. */
  readonly certificates: KeyFile | undefined
  /** Where a missing certificate belongs, for messages. */
  readonly certificatesWhere: string
  /** Has the authorities above. */
  readonly authorities: KeyFile | undefined
  readonly passphrase: string | undefined
  /** How to give a passphrase, for messages. */
  readonly passphraseRemedy: string
  /** Lines about files that other users can read. */
  readonly warnings: readonly string[]
}

const readableByAll = 0o004
const missing = ['no such file or directory', 'check the path'] as const

/**
 * Reads a directory with `tls.key`, `tls.crt`, `ca.crt` and `passphrase`, or with `keystore.p12` instead of the first
 * two, or a single file.
 */
export async function readKeyFiles(source: KeySource): Promise<KeyFiles> {
  const { path, names } = source
  const stats = await stat(path).catch((err: unknown) => {
    throw unreadable(`${names.path} ${path}`, err)
  })
  const isDirectory = stats.isDirectory()
  // what cannot be entered cannot be read either, and that error names the file
  const directory = isDirectory ? await snapshotOf(path).catch(() => path) : undefined
  const warnings: string[] = []
  const read = async (where: string, file: string): Promise<KeyFile> => {
    const found = await readIfThere(where, file, warnings)
    if (!found) throw new ProvidedKeyError(where, ...missing)
    return found
  }
  const inDirectory = (name: string, isSecret = false): Promise<KeyFile | undefined> =>
    directory === undefined
      ? Promise.resolve(undefined)
      : readIfThere(`${names.path} ${join(path, name)}`, join(directory, name), isSecret ? warnings : [])

  const certificates = await inDirectory('tls.crt')
  const store = certificates ? undefined : await inDirectory('keystore.p12', true)
  const key =
    directory === undefined
      ? await read(`${names.path} ${path}`, path)
      : ((await inDirectory('tls.key', true)) ?? store)
  if (!key)
    throw new ProvidedKeyError(
      `${names.path} ${join(path, 'tls.key')}`,
      'no such file',
      'the directory must have tls.key and tls.crt, or keystore.p12',
    )
  const passphrase =
    source.passphraseFile === undefined
      ? await inDirectory('passphrase', true)
      : await read(`${names.passphraseFile} ${source.passphraseFile}`, source.passphraseFile)
  return {
    key,
    certificates,
    certificatesWhere:
      directory !== undefined && key !== store ? `${names.path} ${join(path, 'tls.crt')}` : key.where,
    authorities: await inDirectory('ca.crt'),
    passphrase: passphrase?.bytes.toString().split(/\r?\n/, 1)[0],
    passphraseRemedy: isDirectory
      ? `write it to ${join(path, 'passphrase')}, or name its file in ${names.passphraseFile}`
      : `name the file of its passphrase in ${names.passphraseFile}`,
    warnings,
  }
}

/** Undefined: there is no such file. */
async function readIfThere(where: string, path: string, warnings: string[]): Promise<KeyFile | undefined> {
  let file: FileHandle
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK) // a pipe would wait for a writer
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw unreadable(where, err)
  }
  try {
    const stats = await file.stat()
    if (!stats.isFile()) throw new ProvidedKeyError(where, 'not a file', 'name a file with a key')
    if (stats.size > KEY_FILE_BYTES)
      throw new ProvidedKeyError(
        where,
        'larger than 256 KiB',
        'leave only the key and its certificates in it',
      )
    if ((stats.mode & readableByAll) !== 0) warnings.push(`${where}: every user can read it: chmod o-r`)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(stats.size), 0, stats.size, 0)
    return { where, bytes: buffer.subarray(0, bytesRead) }
  } finally {
    await file.close()
  }
}

function unreadable(where: string, err: unknown): ProvidedKeyError {
  const { code } = err as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'ENOTDIR') return new ProvidedKeyError(where, ...missing)
  if (code === 'EACCES' || code === 'EPERM')
    return new ProvidedKeyError(
      where,
      `not readable for user id ${process.getuid?.() ?? '?'}`,
      'let this user read it',
    )
  return new ProvidedKeyError(where, `not readable (${code ?? 'unknown'})`, 'check the file')
}
