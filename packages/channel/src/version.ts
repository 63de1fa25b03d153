import { decodeText, encodeText, MalformedHeader } from './headers.js'

/** The program on one side of a channel. */
export interface Version {
  /** For example `v1.1.13`. */
  readonly version: string
  readonly revision: string
  readonly buildDate: string
  readonly os: string
  readonly arch: string
}

/** Value of headerKey.version. */
export const encodeVersion = ({ version, revision, buildDate, os, arch }: Version): Buffer =>
  encodeText([version, revision, buildDate, os, arch].join('|'))

export function decodeVersion(value: Buffer): Version {
  const parts = decodeText(value).split('|')
  if (parts.length !== 5) throw new MalformedHeader('a version without exactly five parts')
  const [version = '', revision = '', buildDate = '', os = '', arch = ''] = parts
  return { version, revision, buildDate, os, arch }
}
