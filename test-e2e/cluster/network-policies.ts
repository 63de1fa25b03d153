import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { BlockList } from 'node:net'
import {
  type Labels,
  type NetworkPolicy,
  type Place,
  type Rule,
  selects,
} from '../kubernetes/network-policy.js'

/** What pods can reach: a pod, a service with the labels of its pods, or a server outside. */
export interface Endpoint {
  readonly address: string
  readonly labels: Labels
  /** No policy is about it, but for its address. */
  readonly isOutside?: boolean
}

/** Drops packets between pods that no policy allows. */
export interface NetworkPolicies extends AsyncDisposable {
  /** Replaces all policies. */
  replace(policies: readonly NetworkPolicy[]): Promise<void>
  /** To be called before a new endpoint sends or receives anything. */
  update(endpoints: readonly Endpoint[]): Promise<void>
}

/** Whether nftables is installed, and filters bridges here. */
export function canFilter(): boolean {
  try {
    execFileSync('unshare', ['--net', 'nft', 'add table bridge test'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/**
 * Filters what crosses the bridge, as nodes do: connections that begin are dropped where the policies of either end do not
 * allow them. Those of the machine itself, such as probes and what balancers pass on, are not filtered. The machine is the
 * namespace `kube-system`, where names are resolved.
 */
export function enforce(
  { bridge, host }: { readonly bridge: string; readonly host: string },
  policies: readonly NetworkPolicy[],
): NetworkPolicies {
  let enforced = policies
  const nameServer: Endpoint = { address: host, labels: {} }

  function isPlace(place: Place, endpoint: Endpoint): boolean {
    const { podSelector, namespaceSelector, ipBlock } = place
    if (ipBlock) return endpoint.isOutside === true && isWithin(ipBlock, endpoint.address)
    if (podSelector && namespaceSelector) throw new Error('not evaluated here: pods of other namespaces')
    if (namespaceSelector)
      return (
        endpoint === nameServer &&
        selects(namespaceSelector, { 'kubernetes.io/metadata.name': 'kube-system' })
      )
    const isPod = endpoint !== nameServer && !endpoint.isOutside
    return isPod && podSelector !== undefined && selects(podSelector, endpoint.labels)
  }
  /** Ports of `to` that the policies of one end allow; 'all': no policy selects it. */
  function allowedPorts(
    direction: 'Ingress' | 'Egress',
    from: Endpoint,
    to: Endpoint,
  ): readonly string[] | 'all' {
    const [own, other] = direction === 'Ingress' ? [to, from] : [from, to]
    const selecting = enforced.filter(
      (policy) => policy.policyTypes.includes(direction) && selects(policy.podSelector, own.labels),
    )
    if (own === nameServer || own.isOutside || selecting.length === 0) return 'all'
    const rules: readonly Rule[] = selecting.flatMap(
      (policy) => (direction === 'Ingress' ? policy.ingress : policy.egress) ?? [],
    )
    return rules.flatMap((rule) => {
      const places = direction === 'Ingress' ? rule.from : rule.to
      if (!rule.ports || places?.length === 0)
        throw new Error('not evaluated here: a rule for all ports or places')
      if (places && !places.some((place) => isPlace(place, other))) return []
      return rule.ports.map(({ port, protocol = 'TCP' }) => `${protocol.toLowerCase()} ${port}`)
    })
  }
  function connections(endpoints: readonly Endpoint[]): readonly string[] {
    const targets = [...endpoints, nameServer]
    const pods = endpoints.filter(({ isOutside }) => !isOutside)
    return pods.flatMap((from) =>
      targets.flatMap((to) => {
        const [out, into] = [allowedPorts('Egress', from, to), allowedPorts('Ingress', from, to)]
        const both = out === 'all' ? into : into === 'all' ? out : out.filter((port) => into.includes(port))
        if (both === 'all')
          return ['tcp', 'udp'].map((kind) => `${from.address} . ${to.address} . ${kind} . 1-65535`)
        return both.map((port) => `${from.address} . ${to.address} . ${port.replace(' ', ' . ')}`)
      }),
    )
  }

  let current: readonly Endpoint[] = []
  const table = `table bridge ${bridge}`
  let last = Promise.resolve()
  function update(endpoints: readonly Endpoint[]): Promise<void> {
    current = endpoints
    const allowed = [...new Set(connections(endpoints))]
    const rules = `${table}
delete ${table}
${table} {
  set allowed {
    type ipv4_addr . ipv4_addr . inet_proto . inet_service
    flags interval
    ${allowed.length > 0 ? `elements = { ${allowed.join(', ')} }` : ''}
  }
  chain judge {
    ip saddr . ip daddr . ip protocol . th dport @allowed accept
    drop
  }
  chain begins {
    tcp flags & (syn | ack) == syn jump judge
    ip protocol udp th sport != 53 jump judge
  }
  chain forward {
    type filter hook forward priority 0; policy accept;
    iifname "${bridge}-*" jump begins
  }
  chain input {
    type filter hook input priority 0; policy accept;
    iifname "${bridge}-*" jump begins
  }
}
`
    last = last.catch(() => undefined).then(() => nft(rules)) // a failure is that of its caller alone
    return last
  }
  return {
    update,
    replace(others) {
      enforced = others
      return update(current)
    },
    async [Symbol.asyncDispose]() {
      await last.catch(() => undefined)
      await nft(`${table}\ndelete ${table}\n`)
    },
  }
}

function isWithin({ cidr, except = [] }: NonNullable<Place['ipBlock']>, address: string): boolean {
  const contains = (block: string): boolean => {
    const [net = '', bits] = block.split('/')
    const list = new BlockList()
    list.addSubnet(net, Number(bits), net.includes(':') ? 'ipv6' : 'ipv4')
    return list.check(address)
  }
  return contains(cidr) && !except.some(contains)
}

async function nft(rules: string): Promise<void> {
  const child = spawn('nft', ['-f', '-'], { stdio: ['pipe', 'ignore', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (data) => {
    errors += data
  })
  child.stdin.end(rules)
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`nft: ${errors}\n${rules}`)
}
