/* Search without a server: browsers start no worker from a file, so its script runs in a hidden frame instead. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inner = frame.contentWindow;
      window.addEventListener("message", (event) => {
        if (event.source !== inner) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      this.send = (data) => waiting.push(data);
      inner.ready = () => {
        this.send = (data) => inner.dispatchEvent(new inner.MessageEvent("message", { data }));
        waiting.forEach(this.send);
      };
      inner.document.open();
      inner.document.write(
        "<script>window.postMessage = (data) => parent.postMessage(data, '*');" +
          "window.importScripts = (...urls) => Promise.all(urls.map((url) => new Promise((done) => {" +
          "const script = document.createElement('script'); script.src = url; script.onload = done;" +
          "document.body.appendChild(script); })));</scr" + "ipt>" +
          '<script src="' + url + '"></scr' + 'ipt><script>ready()</scr' + "ipt>"
      );
      inner.document.close();
    }
    postMessage(data) {
      this.send(data);
    }
    terminate() {}
  };
}
