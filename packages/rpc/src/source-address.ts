import { SocketAddress } from 'node:net'

/** The canonical text of an IP address. An IPv4 address in IPv6 form becomes an IPv4 address, and a zone is left out. */
export function plainAddress(address: string): string {
  const [bare = ''] = address.split('%')
  const { address: text } = new SocketAddress({
    address: bare,
    family: bare.includes(':') ? 'ipv6' : 'ipv4',
  })
  return text.replace(/^::ffff:(?=\d+\.)/, '')
}

/** The key of limits per source: an IPv4 address, or the /64 network of an IPv6 address. */
export function sourceOf(plain: string): string {
  if (!plain.includes(':')) return plain
  const [head = [], tail = []] = plain.split('::').map((half) => half.split(':').filter(Boolean))
  const tailGroups = tail.length + (plain.includes('.') ? 1 : 0)
  const groups = plain.includes('::')
    ? [...head, ...Array(8 - head.length - tailGroups).fill('0'), ...tail]
    : head
  return `${groups.slice(0, 4).join(':')}::/64`
}
