// Measures a page: its longest task, memory, and leaks.

/** Runs in the page before its scripts. */
function observe() {
  performance.mark('watched')
  const seen = (window.seen = { urls: 0, workers: 0, contexts: [] })
  for (const [name, by] of [['createObjectURL', 1], ['revokeObjectURL', -1]]) {
    const real = URL[name].bind(URL)
    URL[name] = (x) => {
      seen.urls += by
      return real(x)
    }
  }
  window.Worker = class extends window.Worker {
    constructor(...args) {
      super(...args)
      seen.workers++
    }
    terminate() {
      seen.workers--
      super.terminate()
    }
  }
  const getContext = HTMLCanvasElement.prototype.getContext
  HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
    const c = getContext.call(this, kind, ...rest)
    if (c && kind.startsWith('webgl') && !seen.contexts.some((r) => r.deref() === c)) seen.contexts.push(new WeakRef(c))
    return c
  }
}

export class Watched {
  static async of(person) {
    await person.context.addInitScript(observe)
    const cdp = await person.context.newCDPSession(person.page)
    await cdp.send('Performance.enable')
    return new Watched(person.page, cdp, await person.context.browser().newBrowserCDPSession())
  }

  constructor(page, cdp, browser) {
    Object.assign(this, { page, cdp, browser })
    this.events = []
    browser.on('Tracing.dataCollected', (e) => this.events.push(...e.value))
  }

  /** Starts recording the tasks of the page. */
  begin() {
    this.events.length = 0
    return this.browser.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: ['toplevel', 'blink.user_timing'] } })
  }

  /** The duration of the longest task since begin, the maximum CPU time of a task, and the CPU time of all, in milliseconds. For the rest of its duration, a task waits for a CPU or the renderer. */
  async longest() {
    await this.page.evaluate(() => performance.mark('watched'))
    await this.page.waitForTimeout(200)
    const done = new Promise((resolve) => this.browser.once('Tracing.tracingComplete', resolve))
    await this.browser.send('Tracing.end')
    await done
    const pages = new Set(this.events.filter((e) => e.name === 'watched').map((e) => `${e.pid}/${e.tid}`))
    const tasks = this.events.filter((e) => e.ph === 'X' && e.name.endsWith('RunTask') && pages.has(`${e.pid}/${e.tid}`))
    const most = (time) => tasks.reduce((m, t) => Math.max(m, (t[time] ?? 0) / 1000), 0)
    return { wall: most('dur'), cpu: most('tdur'), all: tasks.reduce((sum, t) => sum + (t.tdur ?? 0) / 1000, 0) }
  }

  /** Megabytes of the script heap after garbage collection. */
  async heap() {
    await this.cdp.send('HeapProfiler.collectGarbage')
    return (await this.cdp.send('Runtime.getHeapUsage')).usedSize / 1e6
  }

  /** Counts everything that pages could leak. */
  async left() {
    const heap = await this.heap()
    const { metrics } = await this.cdp.send('Performance.getMetrics')
    const metric = (name) => metrics.find((m) => m.name === name).value
    const seen = await this.page.evaluate(() => ({ urls: window.seen.urls, workers: window.seen.workers, contexts: window.seen.contexts.filter((r) => r.deref() && !r.deref().isContextLost()).length }))
    return { heap, nodes: metric('Nodes'), listeners: metric('JSEventListeners'), ...seen }
  }
}

export const tasks = ({ wall, cpu }) => `${ms(wall)}, at most ${ms(cpu)} of CPU`
export const ms = (v) => `${Math.round(v)} ms`
export const mb = (v) => `${v.toFixed(1)} MB`
export const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1]
