import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { type Container, startContainer } from './container.js'
import type { ContainerSpec, Env, KeyPath, PodTemplate, Probe, Volume } from './manifests.js'
import type { Endpoint } from './network-policies.js'
import type { PodNetwork } from './pod-network.js'
import { succeeds } from './probes.js'

/** What pods find in their cluster. */
export interface PodDeps {
  readonly network: PodNetwork
  readonly directory: string
  configMap(name: string): Readonly<Record<string, string>> | undefined
  secret(name: string): Readonly<Record<string, Buffer>> | undefined
  /** The directory of an image. */
  image(name: string): string
  /** Opens the network to the pod, as far as policies allow. Returns what takes it back. */
  admit(endpoint: Endpoint): Promise<() => Promise<void>>
  /** The state of a pod has changed. */
  changed(): void
  /** Adds a line to the log of the cluster. */
  note(text: string): void
  /** Something that a healthy pod does not do. */
  problem(text: string): void
  /** By what waits of the manifests are divided: hooks, minReadySeconds, periods of probes before a pod is ready. */
  readonly hurry: number
}

export interface Pod {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly address: string
  /** Which template of its workload it was made from. */
  readonly revision: number
  /** The number of a named port of its containers. */
  port(name: string): number
  isReady(): boolean
  /** Ready for so long that the workload counts on it. */
  isAvailable(): boolean
  isTerminating(): boolean
  /** Processor time of its running containers. */
  cpuSeconds(): number
  /** What comes of a connection that a process in it begins. */
  connectionTo(host: string, port: number): Promise<'opened' | 'dropped'>
  /** Of a job: how all containers have ended. */
  readonly completed: Promise<boolean>
  /** Ends it as Kubernetes does: out of its services, hook, SIGTERM, and SIGKILL after the grace. */
  stop(): Promise<void>
  /** Ends it at once. */
  kill(): Promise<void>
}

export interface PodOptions {
  readonly name: string
  readonly template: PodTemplate
  readonly revision: number
  readonly minReadySeconds: number
}

const PAUSE_MS = 500
const LONGEST_PAUSE_MS = 10_000
const GRACE_SECONDS = 30

export function startPod(deps: PodDeps, { name, template, revision, minReadySeconds }: PodOptions): Pod {
  const { network, changed, note, problem, hurry } = deps
  const { spec } = template
  const labels = template.metadata?.labels ?? {}
  const address = network.allocate()
  const directory = join(deps.directory, `${name}-${address.split('.').at(-1)}`)
  const stopping = new AbortController()
  let isKilled = false
  const running = new Set<Container>()
  const readyContainers = new Set<string>()
  let sandbox = 0
  let roots = 0
  let isReady = false
  let isAvailable = false
  let availableTimer: NodeJS.Timeout | undefined
  const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener('abort', () => resolve()))

  function setReady(container: string, ready: boolean): void {
    if (ready) readyContainers.add(container)
    else readyContainers.delete(container)
    const before = isReady
    isReady = readyContainers.size === spec.containers.length
    if (before === isReady) return
    note(`${name} ${address} is ${isReady ? 'ready' : 'not ready'}`)
    isAvailable = false
    clearTimeout(availableTimer)
    if (isReady)
      availableTimer = setTimeout(
        () => {
          isAvailable = true
          changed()
        },
        (minReadySeconds * 1000) / hurry,
      )
    changed()
  }

  async function start(container: ContainerSpec, mounts: ReadonlyMap<string, string>): Promise<Container> {
    const root = join(directory, `root-${roots++}`)
    await mkdir(root)
    const started = startContainer({
      spec: container,
      podSecurity: spec.securityContext ?? {},
      sandbox,
      image: deps.image(container.image),
      env: { HOSTNAME: name, ...environmentOf(container) },
      mounts: (container.volumeMounts ?? []).map(
        ({ name: volume, mountPath, readOnly = false, subPath = '' }) => {
          const source = mounts.get(volume)
          if (source === undefined) throw new Error(`pod ${name} has no volume ${volume}`)
          return { source: join(source, subPath), target: mountPath, readOnly: readOnly || isFiles(volume) }
        },
      ),
      root,
      etc: join(directory, 'etc'),
      log: join(deps.directory, `${name}-${container.name}.log`),
    })
    running.add(started)
    if (isKilled) started.kill('SIGKILL')
    void started.ended.then(() => running.delete(started))
    return started
  }
  const isFiles = (volume: string): boolean =>
    spec.volumes?.some((one) => one.name === volume && !one.emptyDir) ?? false

  function environmentOf(container: ContainerSpec): Record<string, string> {
    const env: Record<string, string> = {}
    for (const { configMapRef, secretRef } of container.envFrom ?? []) {
      if (configMapRef) Object.assign(env, required(deps.configMap, configMapRef))
      if (secretRef)
        for (const [key, value] of Object.entries(required(deps.secret, secretRef) ?? {}))
          env[key] = `${value}`
    }
    for (const one of container.env ?? []) {
      const value = resolved(one)
      if (value !== undefined)
        env[one.name] = value.replaceAll(/\$\((\w+)\)/g, (text, key) => env[key] ?? text)
    }
    return env
  }
  function required<T>(
    find: (name: string) => T | undefined,
    ref: { name: string; optional?: boolean },
  ): T | undefined {
    const found = find(ref.name)
    if (found === undefined && !ref.optional)
      throw new Error(`pod ${name} needs ${ref.name}, which does not exist`)
    return found
  }
  function resolved({ value, valueFrom }: Env): string | undefined {
    if (!valueFrom) return value ?? ''
    const { configMapKeyRef, secretKeyRef, fieldRef } = valueFrom
    const ref = configMapKeyRef ?? secretKeyRef
    if (ref) {
      const found = configMapKeyRef
        ? required(deps.configMap, ref)?.[ref.key]
        : required(deps.secret, ref)?.[ref.key]
      if (found === undefined && !ref.optional) throw new Error(`pod ${name}: ${ref.name} has no ${ref.key}`)
      return found?.toString()
    }
    const fields: Record<string, string | undefined> = {
      'metadata.name': name,
      'metadata.namespace': 'overlay',
      'status.podIP': address,
      'spec.nodeName': 'node',
    }
    const field = fields[fieldRef?.fieldPath ?? '']
    if (field === undefined) throw new Error(`pod ${name}: unknown field ${fieldRef?.fieldPath}`)
    return field
  }

  async function writeVolumes(): Promise<ReadonlyMap<string, string>> {
    const group = spec.securityContext?.fsGroup ?? 0
    const mounts = new Map<string, string>()
    for (const volume of spec.volumes ?? []) {
      const path = join(directory, 'volumes', volume.name)
      await mkdir(path, { recursive: true })
      await writeVolume(volume, path, group)
      mounts.set(volume.name, path)
    }
    return mounts
  }
  async function writeVolume(
    { emptyDir, secret, configMap }: Volume,
    path: string,
    group: number,
  ): Promise<void> {
    await chown(path, 0, group)
    if (emptyDir) return chmod(path, 0o2777)
    const files = secret
      ? required(deps.secret, { name: secret.secretName })
      : required(deps.configMap, configMap ?? { name: '' })
    const { items, defaultMode = 0o644 } = secret ?? configMap ?? {}
    const paths: readonly KeyPath[] = items ?? Object.keys(files ?? {}).map((key) => ({ key, path: key }))
    for (const { key, path: file } of paths) {
      await writeFile(join(path, file), files?.[key] ?? '')
      await chown(join(path, file), 0, group)
      await chmod(join(path, file), defaultMode | (group ? 0o040 : 0))
    }
  }
  async function writeEtc(): Promise<void> {
    const etc = join(directory, 'etc')
    await mkdir(etc, { recursive: true })
    await writeFile(
      join(etc, 'resolv.conf'),
      `nameserver ${network.host}\nsearch overlay.svc.cluster.local\noptions ndots:5\n`,
    )
    await writeFile(join(etc, 'hosts'), `127.0.0.1 localhost\n${address} ${name}\n`)
    await writeFile(join(etc, 'nsswitch.conf'), 'hosts: files dns\n')
  }

  /** Repeats a probe until the pod stops or `take` returns false. */
  async function probe(
    container: ContainerSpec,
    one: Probe,
    signal: AbortSignal,
    take: (isOk: boolean) => boolean,
  ): Promise<void> {
    const { initialDelaySeconds = 0, periodSeconds = 10, failureThreshold = 3, successThreshold = 1 } = one
    await pause((initialDelaySeconds * 1000) / hurry, undefined, { signal })
    let [failures, successes] = [0, 0]
    for (;;) {
      if (await succeeds(one, container, address)) [failures, successes] = [0, successes + 1]
      else [failures, successes] = [failures + 1, 0]
      if (signal.aborted) return
      if (successes === successThreshold && !take(true)) return
      // as long as the manifest says, although the periods are shorter
      const most = failureThreshold * (isReady ? 1 : hurry)
      if (failures >= most && !take(false)) return
      await pause((periodSeconds * 1000) / (isReady ? 1 : hurry), undefined, { signal })
    }
  }
  async function probeAll(container: ContainerSpec, process: Container, signal: AbortSignal): Promise<void> {
    const restart = (why: string): false => {
      problem(`${name}: ${why} of ${container.name} has failed`)
      process.kill('SIGKILL')
      return false
    }
    const { startupProbe, livenessProbe, readinessProbe } = container
    if (startupProbe)
      await probe(container, startupProbe, signal, (isOk) =>
        isOk === true ? false : restart('the startup probe'),
      )
    const loops: Promise<void>[] = []
    if (livenessProbe)
      loops.push(probe(container, livenessProbe, signal, (isOk) => isOk || restart('the liveness probe')))
    if (readinessProbe)
      loops.push(
        probe(container, readinessProbe, signal, (isOk) => {
          setReady(container.name, isOk)
          return true
        }),
      )
    else setReady(container.name, true)
    await Promise.all(loops)
  }

  /** Runs a container until the pod stops, and a job's until it succeeds. */
  async function keep(
    container: ContainerSpec,
    mounts: ReadonlyMap<string, string>,
    isJob: boolean,
  ): Promise<void> {
    for (
      let pauseMs = PAUSE_MS;
      !stopping.signal.aborted;
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)
    ) {
      const process = await start(container, mounts)
      const probing = new AbortController()
      const probes = isJob
        ? Promise.resolve()
        : probeAll(container, process, AbortSignal.any([probing.signal, stopping.signal])).catch(ignoreAbort)
      const code = await process.ended
      probing.abort()
      await probes
      setReady(container.name, false)
      if (stopping.signal.aborted || (isJob && code === 0)) return
      if (!isJob) problem(`${name}: ${container.name} has ended with ${code}`)
      await pause(pauseMs, undefined, { signal: stopping.signal }).catch(ignoreAbort)
    }
  }

  async function live(): Promise<boolean> {
    await mkdir(directory, { recursive: true })
    const holder = spawn(
      'setpriv',
      ['--pdeathsig', 'KILL', 'unshare', '--net', 'sh', '-c', 'echo; exec sleep infinity'],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
        cwd: '/',
      },
    )
    let leave: (() => Promise<void>) | undefined
    try {
      await once(holder.stdout, 'data')
      sandbox = holder.pid ?? 0
      leave = await deps.admit({ address, labels })
      await network.attach(sandbox, address)
      await writeEtc()
      const mounts = await writeVolumes()
      for (const container of spec.initContainers ?? []) await keep(container, mounts, true)
      const isJob = spec.restartPolicy !== undefined && spec.restartPolicy !== 'Always'
      const all = Promise.all(spec.containers.map((container) => keep(container, mounts, isJob)))
      if (isJob) await Promise.race([all, stopped])
      else await stopped
      const isComplete = !stopping.signal.aborted
      await shutDown()
      await all
      return isComplete
    } finally {
      holder.kill('SIGKILL')
      try {
        await network.detach(address)
        await leave?.()
      } finally {
        await rm(directory, { recursive: true, force: true })
        changed()
      }
    }
  }
  async function shutDown(): Promise<void> {
    const grace = (spec.terminationGracePeriodSeconds ?? GRACE_SECONDS) * 1000
    const hooks = spec.containers.map(({ lifecycle }) => (lifecycle?.preStop?.sleep?.seconds ?? 0) * 1000)
    const hookMs = Math.max(0, ...hooks)
    if (spec.containers.some(({ lifecycle }) => lifecycle?.preStop?.exec))
      throw new Error(`${name}: hooks that run commands are not executed`)
    if (!stopping.signal.aborted) return
    if (!isKilled) await pause(hookMs / hurry)
    note(`${name} stops`)
    for (const process of running) process.kill('SIGTERM')
    const killer = setTimeout(() => {
      problem(`${name}: killed after its grace`)
      for (const process of running) process.kill('SIGKILL')
    }, grace - hookMs)
    const codes = await Promise.all([...running].map(({ ended }) => ended))
    clearTimeout(killer)
    for (const code of codes) if (code !== 0 && !isKilled) problem(`${name}: stopped with ${code}`)
  }

  const completed = live().catch((err: unknown) => {
    problem(`${name}: ${err}`)
    return false
  })
  async function stop(): Promise<void> {
    if (!stopping.signal.aborted) {
      stopping.abort()
      note(`${name} ${address} leaves`)
      clearTimeout(availableTimer)
      changed()
    }
    await completed
  }
  return {
    name,
    labels,
    address,
    revision,
    port(named) {
      const [port] = spec.containers.flatMap(({ ports = [] }) => ports.filter((one) => one.name === named))
      if (!port) throw new Error(`pod ${name} has no port ${named}`)
      return port.containerPort
    },
    isReady: () => isReady && !stopping.signal.aborted,
    isAvailable: () => isAvailable && !stopping.signal.aborted,
    isTerminating: () => stopping.signal.aborted,
    cpuSeconds: () => [...running].reduce((sum, container) => sum + container.cpuSeconds(), 0),
    connectionTo: (host, port) => connectionFrom(sandbox, host, port),
    completed,
    stop,
    kill() {
      isKilled = true
      const done = stop()
      for (const process of running) process.kill('SIGKILL')
      return done
    },
  }
}

function ignoreAbort(err: unknown): void {
  if ((err as Error).name !== 'AbortError') throw err
}

async function connectionFrom(sandbox: number, host: string, port: number): Promise<'opened' | 'dropped'> {
  const command = ['timeout', '1', 'bash', '-c', `</dev/tcp/${host}/${port}`]
  const child = spawn('nsenter', [`--net=/proc/${sandbox}/ns/net`, ...command], { stdio: 'ignore' })
  const [code] = await once(child, 'exit')
  if (code === 0) return 'opened'
  if (code === 124) return 'dropped' // `timeout` has ended it: there was not even a refusal
  throw new Error(`a connection to ${host}:${port} has ended with ${code}`)
}
