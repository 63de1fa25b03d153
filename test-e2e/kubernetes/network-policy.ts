export type Labels = Readonly<Record<string, string>>

export interface Selector {
  readonly matchLabels?: Labels
  readonly matchExpressions?: readonly {
    readonly key: string
    readonly operator: string
    readonly values: readonly string[]
  }[]
}

/** What a rule allows, as far as our policies use it. */
export interface Place {
  readonly podSelector?: Selector
  readonly namespaceSelector?: Selector
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] }
}

export interface Rule {
  readonly from?: readonly Place[]
  readonly to?: readonly Place[]
  readonly ports?: readonly { readonly port: number; readonly protocol?: string }[]
}

/** The specification of a NetworkPolicy. */
export interface NetworkPolicy {
  readonly podSelector: Selector
  readonly policyTypes: readonly ('Ingress' | 'Egress')[]
  readonly ingress?: readonly Rule[]
  readonly egress?: readonly Rule[]
}

export function selects({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([label, value]) => labels[label] === value) &&
    matchExpressions.every(({ key, operator, values }) => {
      if (operator !== 'In') throw new Error(`not evaluated here: ${operator}`)
      return values.includes(labels[key] ?? '')
    })
  )
}
