import { isIssuedBy } from '@overlay/x509'
import type { Key } from '../store/keys.js'
import { isSelfSigned } from './all-keys.js'
import { KeyRefused } from './key-refused.js'

/** The certificates between one and its root, the lowest first, and the root, if the chain has it. */
export function pathOf(
  pem: string,
  chain: readonly string[],
  certified: readonly Key[],
): { readonly between: readonly string[]; readonly root: string | undefined } {
  const roots = certified.filter(({ role }) => role === 'root')
  const between: string[] = []
  for (let last = pem; ; ) {
    if (isSelfSigned(last)) return { between, root: undefined } // it is a root itself
    const known = roots.some((root) => isIssuedBy(last, root.pem))
    if (known) return { between, root: undefined }
    const issuer = chain.find((one) => !between.includes(one) && one !== pem && isIssuedBy(last, one))
    if (issuer === undefined)
      throw new KeyRefused('unusable', 'the certificate leads to no root: add the certificates up to it')
    if (isSelfSigned(issuer)) return { between, root: issuer }
    between.push(issuer)
    last = issuer
  }
}
