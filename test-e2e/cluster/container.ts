import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ContainerSpec, SecurityContext } from './manifests.js'

/** A directory of the machine at a path of a container. */
export interface Mount {
  readonly source: string
  readonly target: string
  readonly readOnly: boolean
}

export interface ContainerOptions {
  readonly spec: ContainerSpec
  readonly podSecurity: SecurityContext
  /** Of the process whose network namespace it joins. */
  readonly sandbox: number
  /** The directory of the files of its image. */
  readonly image: string
  /** Exactly its environment. */
  readonly env: Readonly<Record<string, string>>
  readonly mounts: readonly Mount[]
  /** An empty directory, which only the container sees filled. */
  readonly root: string
  /** Is copied to `/etc` of the container. */
  readonly etc: string
  readonly log: string
}

export interface Container {
  readonly ended: Promise<number>
  hasEnded(): boolean
  /** Processor time that it has used. */
  cpuSeconds(): number
  kill(signal: NodeJS.Signals): void
}

/** Where the image has its files, as deploy/Containerfile copies them. */
const WORK_DIR = '/opt/overlay'
/** Not where the machine has Node: a mount of the container may hide that. */
const NODE_DIR = '/opt/node'
/** As deploy/Containerfile and the image of Node set it. */
const imageEnv = { PATH: `${NODE_DIR}/bin:/usr/bin:/bin`, NODE_ENV: 'production' }

/**
 * Runs the command of a container as a process with its own root: the system's programs, the files of the image and the
 * mounts. Of the machine, it sees nothing else. It has the user, the groups and no capabilities of the manifest.
 */
export function startContainer(options: ContainerOptions): Container {
  const { spec, sandbox, env, log } = options
  if (!spec.command) throw new Error(`container ${spec.name} has no command`)
  const child = spawn(
    'setpriv',
    [
      '--pdeathsig',
      'KILL',
      'nsenter',
      `--net=/proc/${sandbox}/ns/net`,
      'unshare',
      '--mount',
      'sh',
      '-ec',
      scriptOf(options),
    ],
    { env: { ...imageEnv, ...env }, stdio: ['ignore', 'pipe', 'pipe'], cwd: '/' },
  )
  for (const output of [child.stdout, child.stderr]) output?.pipe(createWriteStream(log, { flags: 'a' }))
  return containerOf(child)
}

export function containerOf(child: ChildProcess): Container {
  const ended = once(child, 'exit').then(([code, signal]) => (signal ? 128 : (code as number)))
  return {
    ended,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    cpuSeconds() {
      const stat = readFileSync(`/proc/${child.pid}/stat`, 'latin1')
      const [user, system] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14)
      return (Number(user) + Number(system)) / USER_HZ
    },
    kill: (signal) => void child.kill(signal),
  }
}

function scriptOf({ spec, podSecurity, image, mounts, root, etc }: ContainerOptions): string {
  const {
    runAsUser: user = 0,
    runAsGroup: group = 0,
    fsGroup = group,
  } = { ...podSecurity, ...spec.securityContext }
  const isReadOnly = { ...podSecurity, ...spec.securityContext }.readOnlyRootFilesystem === true
  const bind = (source: string, target: string, readOnly: boolean): string[] => [
    `mkdir -p ${quote(root + target)}`,
    `mount --bind ${quote(source)} ${quote(root + target)}`,
    ...(readOnly ? [`mount -o remount,bind,ro ${quote(root + target)}`] : []),
  ]
  const lines = [
    'mount --make-rprivate /',
    `mount -t tmpfs -o mode=755 none ${quote(root)}`,
    ...bind('/usr', '/usr', true),
    ...bind(dirname(dirname(process.execPath)), NODE_DIR, true),
    `for link in bin sbin lib lib64; do ln -s usr/$link ${quote(root)}/$link; done`,
    ...bind('/proc', '/proc', false),
    `mkdir ${quote(root)}/dev && mount --rbind /dev ${quote(root)}/dev`,
    `cp -R ${quote(etc)} ${quote(root)}/etc`,
    ...bind(image, WORK_DIR, true),
    ...mounts.flatMap(({ source, target, readOnly }) => bind(source, target, readOnly)),
    ...(isReadOnly ? [`mount -o remount,ro ${quote(root)}`] : []),
  ]
  const command = [...(spec.command ?? []), ...(spec.args ?? [])].map(quote).join(' ')
  const rights = `--reuid ${user} --regid ${group} --groups ${fsGroup} --no-new-privs --inh-caps=-all --bounding-set=-all`
  return `${lines.join('\n')}
exec /usr/sbin/chroot ${quote(root)} env -C ${quote(spec.workingDir ?? WORK_DIR)} setpriv ${rights} --pdeathsig KILL ${command}`
}

/** Ticks per second in /proc. */
const USER_HZ = 100

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
