/** One block of a PEM text. */
export interface PemBlock {
  readonly label: string
  /** From its first to its last dash. */
  readonly text: string
}

/** The blocks of a text, in order. Skips a boundary without its counterpart. Takes linear time for any text. */
export function* pemBlocksIn(text: string): Generator<PemBlock, void> {
  let begin: { readonly label: string; readonly at: number } | undefined
  for (const { 0: boundary, 1: which, 2: label = '', index } of text.matchAll(
    /-----(BEGIN|END) ([A-Z0-9 ]{1,40})-----/g,
  )) {
    if (which === 'BEGIN') {
      begin = { label, at: index }
    } else {
      if (begin?.label === label) yield { label, text: text.slice(begin.at, index + boundary.length) }
      begin = undefined
    }
  }
}

/** One PEM block that ends in a newline, so that blocks can be concatenated. */
export function pemOf(der: Uint8Array, label = 'CERTIFICATE'): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
