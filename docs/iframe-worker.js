// Search of a site that is read from the disk (file://), where browsers allow no workers: the worker's script runs in a
// hidden frame instead. Its name is what the theme's plugin `offline` looks for; otherwise that would load one from a CDN.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      const tell = (target, data) => target.dispatchEvent(new MessageEvent("message", { data }));
      inside.postMessage = (data) => tell(this, data); // what the worker says
      const script = inside.document.createElement("script");
      const loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      this.postMessage = (data) => loaded.then(() => tell(inside, data)); // what it is told
      script.src = address;
      inside.document.body.append(script);
    }
  };
}
